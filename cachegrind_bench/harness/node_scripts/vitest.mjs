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

Object.assign(globalThis, { bench, describe, suite }); // for a configuration that has `globals`
