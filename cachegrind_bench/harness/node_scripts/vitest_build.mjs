// Builds the benchmark files of a project by its own Vite and configuration, and writes what became of each: the file that was
// built, and its path in the project. The folders of the result and the options of Vitest are the arguments.

import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const [target, ...options] = process.argv.slice(2);
const root = process.cwd();
const load = async (from, name) => {
  const found = await import(pathToFileURL(createRequire(from).resolve(name)));
  return found.default?.build || found.default?.createVitest ? { ...found.default, ...found } : found;
};
const { createVitest, parseCLI } = await load(path.join(root, "package.json"), "vitest/node").catch((error) => {
  if (error.code !== "MODULE_NOT_FOUND" || !error.message.includes("'vitest/node'")) throw error;
  console.error(`${root} has no Vitest: "npm ci" installs what a project needs, "npm install --save-dev vitest" adds it`);
  process.exit(1);
});
const given = options.length ? parseCLI(["vitest", "bench", ...options], { allowUnknownOptions: false }) : { options: {}, filter: [] };
// Those that choose what is built and what is found, and those that only say what is written. Each letter is one of these.
const KNOWN = ["--", "color", "config", "mode", "project", "dir", "exclude", "run", "watch", "reporter", "reporters", "outputFile", "outputJson", "compare", "silent"];
for (const name of Object.keys(given.options).filter((name) => name.length > 1 && !KNOWN.includes(name))) {
  const advice = name === "testNamePattern" ? "cg-bench's -k chooses benchmarks" : "leave it out";
  console.error(`cg-bench cannot follow the option ${name} of Vitest: ${advice}`);
  process.exit(1);
}
const vitest = await createVitest("benchmark", { ...given.options, root, watch: false, run: true });
const specifications = await (vitest.globTestSpecifications ?? vitest.globTestSpecs).call(vitest, given.filter);
const files = [...new Set(specifications.map((item) => item.moduleId))].sort();
const { configFile } = (vitest.vite ?? vitest.server).config;
await vitest.close();
if (!files.length) process.exit(0);

const named = (file) => path.relative(root, file).replace(/(\.(bench|benchmark))?\.[cm]?[jt]sx?$/, "");
const ours = new URL("./vitest.mjs", import.meta.url).pathname;
const vite = await load(createRequire(path.join(root, "package.json")).resolve("vitest/package.json"), "vite");
await vite.build({
  root,
  configFile: configFile || false,
  mode: given.options.mode,
  logLevel: "warn",
  plugins: [{ name: "cg-bench", enforce: "pre", resolveId: (id) => (id === "vitest" ? { id: ours, external: true } : null) }],
  build: {
    ssr: true, lib: false, outDir: target, emptyOutDir: true, minify: false, target: "esnext", sourcemap: false, copyPublicDir: false,
    rollupOptions: {
      input: Object.fromEntries(files.map((file) => [named(file), file])),
      output: { format: "es", entryFileNames: "[name].mjs", chunkFileNames: "[name].mjs" },
    },
  },
});
for (const file of files) console.log(`cg-bench-file: ${JSON.stringify([path.join(target, `${named(file)}.mjs`), named(file)])}`);
process.exit(0);
