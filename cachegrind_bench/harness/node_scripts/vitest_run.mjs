// Lists the benchmarks of files that vitest_build.mjs built, those of each after a line that says so, or counts one. Its arguments
// are each file and what the names in it begin with, and what measure.mjs takes.

import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { chosen, count, leaveOut, list } from "./measure.mjs";
import { found } from "./vitest.mjs";

const words = process.argv.splice(2);
while (words.length) {
  const [file, name] = words.splice(0, 2);
  console.log("\ncg-bench-next-file");
  await import(pathToFileURL(path.resolve(file)));
  const all = found.splice(0), only = all.some((benchmark) => benchmark.only);
  for (const benchmark of all) {
    const whole = `${name}/${benchmark.name}`;
    if (benchmark.skip || (only && !benchmark.only)) {
      leaveOut(whole, benchmark.skip ?? "another one is marked with only");
      continue;
    }
    list(whole);
    if (chosen(whole)) await count(benchmark);
  }
}
