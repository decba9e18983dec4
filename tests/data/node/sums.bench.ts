import { bench, describe } from "vitest";
import { variable, work } from "./sums.mjs";

const rounds: number = variable("WORK", 1000);

describe("sums", () => {
  bench("work", () => { work(rounds); }, { time: 100, setup: () => { work(variable("SETUP", 10)); } });
  bench.skip("left out", () => {});
});
