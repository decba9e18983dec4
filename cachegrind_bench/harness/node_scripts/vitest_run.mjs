// Lists or counts the benchmarks of a file that vitest_build.mjs built: its arguments are the file, what the names begin with, and
// what measure.mjs takes.

import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { chosen, count, list } from "./measure.mjs";
import { found } from "./vitest.mjs";

const [file, name] = process.argv.splice(2, 2);
await import(pathToFileURL(path.resolve(file)));
for (const benchmark of found) {
  const whole = `${name}/${benchmark.name}`;
  list(whole);
  if (chosen(whole)) await count(benchmark);
}
