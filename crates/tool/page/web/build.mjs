// Bundles the plot library: `node build.mjs OUT_FILE LICENCE_FILE`. Started by scripts/page-bundle.
//
// Plot imports maps, colour schemes, trees and more from `d3`, which the page does not use. They are two
// fifths of a bundle. Here `d3` has only the modules listed in D3; the other names that Plot imports are
// undefined. A plot that needs one of them fails in the browser test.

import {build} from "esbuild";
import {readFileSync, writeFileSync, readdirSync, existsSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const D3 = [
  "d3-array", "d3-axis", "d3-color", "d3-format", "d3-interpolate", "d3-path", "d3-scale",
  "d3-selection", "d3-shape", "d3-time", "d3-time-format",
];
const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const [out, licences] = process.argv.slice(2);

// The names that Plot imports from `d3` and that are in no module of D3.
async function missing() {
  const known = new Set();
  for (const module of D3) for (const name of Object.keys(await import(module))) known.add(name);
  const imported = new Set();
  const visit = (folder) => {
    for (const entry of readdirSync(folder, {withFileTypes: true})) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) visit(path);
      else if (path.endsWith(".js"))
        for (const [, names] of readFileSync(path, "utf8").matchAll(/import\s*\{([^}]*)\}\s*from "d3"/g))
          for (const name of names.split(",")) imported.add(name.trim().split(" as ")[0]);
    }
  };
  visit(join(modules, "@observablehq/plot/src"));
  return [...imported].filter((name) => name && !known.has(name)).sort();
}

const names = await missing();
const small = {
  name: "small-d3",
  setup(build) {
    build.onResolve({filter: /^d3$/}, () => ({path: "d3", namespace: "small"}));
    // The package exports only its index, which has side effects and so keeps every mark.
    build.onResolve({filter: /^@observablehq\/plot\/src\//}, ({path}) => ({path: join(modules, path)}));
    build.onLoad({filter: /.*/, namespace: "small"}, () => ({
      contents: [
        ...D3.map((module) => `export * from "${module}";`),
        // Plot prepares its maps when it is loaded.
        ...names.map((name) => `export const ${name} = ${name.startsWith("geo") ? "() => undefined" : "undefined"};`),
      ].join("\n"),
      resolveDir: here,
    }));
  },
};

const result = await build({
  entryPoints: [join(here, "plot.js")],
  bundle: true, minify: true, format: "iife", globalName: "Plot", target: "es2021", charset: "ascii",
  legalComments: "none", plugins: [small], write: false, metafile: true, logLevel: "warning", absWorkingDir: here,
});

// The packages whose code is in the bundle, with their versions and licences.
const used = new Set();
for (const [path, {bytesInOutput}] of Object.entries(Object.values(result.metafile.outputs)[0].inputs)) {
  const name = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1];
  if (name && bytesInOutput > 0) used.add(name);
}
const of = (name) => JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
const listed = [...used].sort().map((name) => `${name} ${of(name).version}`);
writeFileSync(out, `/* ${listed.join(", ")}. Licences: plot.LICENCES */\n${result.outputFiles[0].text}`);
const texts = [...used].sort().map((name) => {
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].find((file) => existsSync(join(modules, name, file)));
  if (!file) throw new Error(`${name} has no licence file`);
  return `${name} ${of(name).version}\n\n${readFileSync(join(modules, name, file), "utf8").trim()}\n`;
});
writeFileSync(licences, texts.join("\n----\n\n"));
