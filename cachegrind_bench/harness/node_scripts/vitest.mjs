// What benchmarks that were built import in place of Vitest. As in `vitest bench`, hooks of suites are not called.

/** What `bench` was called with. */
export const found = [];
let path = [];

const nothing = () => {};
const titled = (name) => (typeof name === "function" ? name.name : String(name));

function add(name, fn, options) {
  found.push({ name: [...path, titled(name)].join("/"), fn, task: { name }, setup: options?.setup });
}

function group(name, ...words) {
  const fn = words.find((word) => typeof word === "function");
  const before = path;
  path = [...path, titled(name)];
  const done = fn?.();
  path = before;
  return done;
}

function variants(act) {
  const none = Object.assign(() => {}, { only: nothing });
  return Object.assign(act, {
    only: act, skip: none, todo: none, concurrent: act, sequential: act, shuffle: act,
    skipIf: (when) => (when ? none : act),
    runIf: (when) => (when ? act : none),
    each: (cases) => (name, fn) => {
      for (const item of cases) {
        const values = Array.isArray(item) ? item : [item];
        let place = 0;
        act(titled(name).replace(/%[sdifjo]/g, () => values[place++]), () => fn(...values));
      }
    },
  });
}

export const bench = variants(add);
export const describe = variants(group);
export const suite = describe;
export const test = variants(() => {});
export const it = test;
export const beforeAll = nothing, beforeEach = nothing, afterAll = nothing, afterEach = nothing;

export const aroundAll = nothing, aroundEach = nothing, assertType = nothing;

/** What stands for a function of Vitest, and for all that it has: an import of it works, and a call is an error. */
function absent(name) {
  return new Proxy(() => {}, {
    get: (_, key) => (typeof key === "symbol" || key === "then" ? undefined : absent(`${name}.${key}`)),
    apply: () => {
      throw new Error(`${name}() is not there: cg-bench executes benchmarks of Vitest without Vitest`);
    },
  });
}

const ABSENT = Object.fromEntries(
  ["assert", "chai", "createExpect", "expect", "expectTypeOf", "inject", "onTestFailed", "onTestFinished", "recordArtifact", "should", "vi"]
    .map((name) => [name, absent(name)]),
);
export const { assert, chai, createExpect, expect, expectTypeOf, inject, onTestFailed, onTestFinished, recordArtifact, should, vi } = ABSENT;
export const vitest = vi;

// For a configuration that has `globals`.
const hooks = { beforeAll, beforeEach, afterAll, afterEach, aroundAll, aroundEach };
Object.assign(globalThis, { bench, describe, suite, test, it, ...hooks, ...ABSENT, vitest });
