// Lists the benchmarks of files that vitest_build.mjs built, those of each after a line that says so, or counts one. Its arguments
// are each file and what the names in it begin with, and what measure.mjs takes.

import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { chosen, count, list } from "./measure.mjs";
import { found } from "./vitest.mjs";

const words = process.argv.splice(2);
while (words.length) {
  const [file, name] = words.splice(0, 2);
  console.log("\ncg-bench-next-file");
  await import(pathToFileURL(path.resolve(file)));
  for (const benchmark of found.splice(0)) {
    const whole = `${name}/${benchmark.name}`;
    list(whole);
    if (chosen(whole)) await count(benchmark);
  }
}
