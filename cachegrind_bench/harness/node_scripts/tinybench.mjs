// Is imported before a script with benchmarks of tinybench: replaces how its `Bench` runs them.

import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { chosen, count, countSync, fail, list } from "./measure.mjs";

const ONCE = { time: 0, iterations: 1, warmup: false, warmupTime: 0, warmupIterations: 0 };
const added = new WeakMap(); // the functions of each Bench, which some versions keep to themselves

function found(bench) {
  const named = (name) => (bench.name ? `${bench.name}/${name}` : name);
  for (const task of bench.tasks) list(named(task.name));
  for (const options of [bench, bench.opts]) if (options && !Object.isFrozen(options)) Object.assign(options, ONCE);
  const task = bench.tasks.find(({ name }) => chosen(named(name)));
  return task && { ...added.get(bench).get(task.name), task, setup: bench.setup ?? bench.opts?.setup };
}

function patch({ prototype }) {
  const { add, run, runSync } = prototype;
  prototype.add = function (name, fn, hooks) {
    if (!added.has(this)) added.set(this, new Map());
    added.get(this).set(name, { ...hooks, fn });
    return add.call(this, name, fn, hooks);
  };
  prototype.run = async function () {
    const benchmark = found(this);
    if (benchmark) await count(benchmark);
    return run.call(this);
  };
  prototype.runSync = function () {
    const benchmark = found(this);
    if (benchmark) countSync(benchmark);
    return runSync.call(this);
  };
}

// The library that the script imports, where Node finds it: in the nearest node_modules above the script.
const inside = (folder) => path.join(folder, "node_modules", "tinybench", "dist");
const script = process.argv[1]; // without its ending, if the user left it out
let folder = path.dirname(fs.existsSync(script) ? fs.realpathSync(script) : script);
while (!fs.existsSync(inside(folder)) && folder !== path.dirname(folder)) folder = path.dirname(folder);
if (!fs.existsSync(inside(folder)))
  fail(`no node_modules above ${script} has tinybench: "npm ci" installs what a project needs, "npm install --save-dev tinybench" adds it`);
for (const name of ["index.js", "index.cjs"]) {
  const file = path.join(inside(folder), name);
  if (fs.existsSync(file)) patch((await import(pathToFileURL(fs.realpathSync(file)))).Bench);
}
