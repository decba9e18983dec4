import { Bench } from "tinybench";
import { variable, work } from "./sums.mjs";

const bench = new Bench({ name: "sums", time: 100 });
const prepared = Array.from({ length: variable("SETUP", 10) }, (_, place) => ({ place }));
const rounds = variable("WORK", 1000);
bench.add("work", () => work(rounds), { beforeAll: () => work(prepared.length) });
bench.add("promised", async () => work(await rounds));
bench.add("prepared", () => work(100), { beforeEach: () => work(100_000) });
await bench.run();
console.table(bench.table());
console.log(bench.tasks[0].result.latency.mean); // has a result, though it is only listed
