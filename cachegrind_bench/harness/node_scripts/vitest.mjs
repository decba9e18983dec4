// What benchmarks that were built import in place of Vitest. As in `vitest bench`, hooks of suites are not called.

import util from "node:util";

/** What `bench` was called with; `skip` says why it does not run, and `only` that others do not. */
export const found = [];
let path = [], how = {};

const nothing = () => {};
const titled = (name) => (typeof name === "function" ? name.name : String(name));

function add(name, fn, options) {
  found.push({ ...how, name: [...path, titled(name)].join("/"), fn, task: { name }, setup: options?.setup });
}

function group(name, ...words) {
  const fn = words.find((word) => typeof word === "function");
  const before = path;
  path = [...path, titled(name)];
  const done = fn?.();
  path = before;
  return done;
}

/** The title of one case of many, as Vitest makes it: of the case's values, of their attributes, and of its number. */
function titleOf(template, values, number) {
  let place = 0;
  const attribute = (key) => {
    const named = values[0] !== null && typeof values[0] === "object" && !Array.isArray(values[0]) ? values[0] : undefined;
    if (!named && !/^\d/.test(key)) return `$${key}`;
    const value = key.split(".").reduce((whole, name) => whole?.[name], named ?? values);
    return util.inspect(value, { breakLength: Infinity });
  };
  return template.replace(/%%|%#|%\$|%[sdifjoOc]|\$([$\w.]+)/g, (sign, key) => {
    if (key) return attribute(key);
    if (sign === "%%") return "%";
    if (sign === "%#") return number;
    return sign === "%$" ? number + 1 : util.format(sign, values[place++]);
  });
}

/** The rows of a table in a template, as objects; of anything else itself. */
function casesOf(cases, values) {
  if (!cases.raw) return [...cases];
  const names = cases[0].trim().split("\n")[0].split("|").map((name) => name.trim());
  const starts = Array.from({ length: Math.floor(values.length / names.length) }, (_, row) => row * names.length);
  return starts.map((start) => Object.fromEntries(names.map((name, column) => [name, values[start + column]])));
}

function variants(act) {
  const under = (changes) => (...words) => {
    const before = how;
    how = { ...how, ...changes };
    const done = act(...words);
    how = before;
    return done;
  };
  const repeated = (spread) => (given, ...inserted) => (name, fn) => {
    const cases = casesOf(given, inserted);
    const all = spread && cases.every(Array.isArray);
    cases.forEach((item, number) => {
      const title = titleOf(titled(name), Array.isArray(item) ? item : [item], number);
      act(title, () => (all ? fn(...item) : fn(item)));
    });
  };
  const skip = under({ skip: "it is marked with skip" });
  return Object.assign(act, {
    only: under({ only: true }), skip, todo: under({ skip: "it is marked with todo" }), concurrent: act, sequential: act, shuffle: act,
    skipIf: (when) => (when ? skip : act),
    runIf: (when) => (when ? act : skip),
    each: repeated(true),
    for: repeated(false),
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
