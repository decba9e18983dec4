import { Bench } from "tinybench";
import { variable, work } from "./sums.mjs";

const bench = new Bench({ name: "sums", time: 100 });
const prepared = Array.from({ length: variable("SETUP", 10) }, (_, place) => ({ place }));
const rounds = variable("WORK", 1000);
const seen = new Map();
// Its first iteration prepares, and what it fills grows.
bench.add("work", () => {
  if (!seen.size) work(prepared.length);
  seen.set(seen.size, work(rounds));
}, { beforeAll: () => work(prepared.length) });
bench.add("prepared", () => work(200_000), { beforeEach: () => work(400_000) });
await bench.run();
console.table(bench.table());
console.log(bench.tasks[0].result.latency.mean); // has a result, though it is only listed
