// Executes one benchmark so that its iterations can be counted: they lie between a call of setpriority() and one of
// getpriority(), which have names in libc's symbol table. What V8 compiles has names in its log.
//
// --cg-bench-task=NAME chooses the benchmark, --cg-bench-iterations=N how often it is executed. Without a name, all are
// executed once, and listed.

import os from "node:os";
import process from "node:process";
import util from "node:util";
import v8 from "node:v8";
import vm from "node:vm";

// How many are executed before: V8 has compiled by then what is worth it, unless an iteration is so long that one is counted.
const WARM = { 1: 10, 10: 500, 100: 2000 };

function option(name) {
  const place = process.argv.findIndex((word) => word.startsWith(`--cg-bench-${name}=`));
  return place < 0 ? undefined : process.argv.splice(place, 1)[0].replace(/^[^=]*=/, "");
}

const wanted = option("task");
const number = Number(option("iterations") ?? 1);
const priority = os.getPriority();
const begin = () => os.setPriority(priority), end = () => os.getPriority();
let kept; // V8 cannot leave out what is kept

function loop(fn, task, times) {
  for (let done = 0; done < times; done++) kept = fn.call(task);
}

async function loopOfPromises(fn, task, times) {
  for (let done = 0; done < times; done++) kept = await fn.call(task);
}

v8.setFlagsFromString("--expose-gc");
const collect = vm.runInNewContext("gc"); // no global name

// So that V8 compiles the loop, and no benchmark into it.
const NOTHING = [() => 1, () => 2, () => 3, () => 4, () => 5, () => 6];

function* loopWithHooks({ fn, task, beforeEach, afterEach }, times, waits, start, stop) {
  for (let done = 0; done < times; done++) {
    yield beforeEach?.call(task, "run");
    start();
    kept = fn.call(task);
    if (waits) yield kept;
    stop();
    yield afterEach?.call(task, "run");
  }
}

/** Execute a benchmark warm, and end the process. Yields what may have to be waited for. */
function* steps(benchmark) {
  const { fn, task, setup, beforeAll, beforeEach, afterEach } = benchmark;
  yield setup?.(task, "run");
  yield beforeAll?.call(task, "run");
  yield beforeEach?.call(task, "run");
  const first = fn.call(task);
  yield first;
  yield afterEach?.call(task, "run");
  const waits = typeof first?.then === "function";
  begin(); // read by V8 here, and not when it counts
  end();
  // What was prepared. Pages that are compacted need not be swept later, as iterations ask for memory.
  v8.setFlagsFromString("--compact-on-every-full-gc");
  collect();
  v8.setFlagsFromString("--no-compact-on-every-full-gc");
  const simple = waits ? loopOfPromises : loop;
  for (let round = 0; round < 120; round++) yield simple(NOTHING[round % NOTHING.length], task, waits ? 100 : 1000);
  const hooks = beforeEach || afterEach;
  if (hooks) yield* loopWithHooks(benchmark, WARM[number], waits, Date.now, Date.now);
  else yield simple(fn, task, WARM[number]);
  collect({ type: "minor" });
  if (hooks) yield* loopWithHooks(benchmark, number, waits, begin, end);
  else {
    begin();
    yield simple(fn, task, number);
    end();
  }
  process.reallyExit(0);
}

/** End the process with a sentence that the user sees. */
export function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}

/** Note the name of a benchmark, if all are listed. */
export function list(name) {
  if (wanted === undefined) process.stdout.write(`\ncg-bench: ${JSON.stringify(name)}\n`);
}

/** Say why a benchmark is not measured, if all are listed. */
export function leaveOut(name, why) {
  if (wanted === undefined) process.stdout.write(`\ncg-bench-left-out: ${JSON.stringify([name, why])}\n`);
}

/** Return whether this is the benchmark to be counted. */
export const chosen = (name) => name === wanted;

/** End the process with what a benchmark has thrown, which the script around it might catch. */
const failed = (error) => fail(`the benchmark ${wanted} has thrown:\n${util.inspect(error)}`);

/** Count this benchmark, which may wait for promises. */
export async function count(benchmark) {
  try {
    const each = steps(benchmark);
    for (let step = each.next(); !step.done; step = each.next()) await step.value;
  } catch (error) {
    failed(error);
  }
}

/** Count this benchmark, which waits for nothing. */
export function countSync(benchmark) {
  try {
    for (const _ of steps(benchmark));
  } catch (error) {
    failed(error);
  }
}
