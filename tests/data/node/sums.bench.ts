import { bench, describe } from "vitest";
import { variable, work } from "./sums.mjs";

const rounds: number = variable("WORK", 1000);

describe("sums", () => {
  const seen = new Map<number, number>();
  // Its first iteration prepares, and what it fills grows.
  bench("work", async () => {
    if (!seen.size) work(variable("SETUP", 10));
    seen.set(seen.size, work(await rounds));
  }, { time: 100, setup: () => { work(variable("SETUP", 10)); } });
  bench.skip("left out", () => {});
});
