// Bundles CodeMirror for the web page and writes down what went into it: `npm ci && npm run build`.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const ASSETS = "../../broker/web/assets";

const made = await build({
  entryPoints: ["codemirror.js"],
  bundle: true,
  format: "esm",
  legalComments: "none",
  metafile: true,
  minify: true,
  outfile: `${ASSETS}/codemirror.js`,
  target: "es2022",
});

const folders = new Set(
  Object.keys(made.metafile.inputs)
    .map((path) => path.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0])
    .filter(Boolean),
);
const bundled = [...folders].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  return { name, version, license, text: readFileSync(`${folder}/LICENSE`, "utf8").trim() };
});
const hash = createHash("sha256").update(readFileSync(`${ASSETS}/codemirror.js`)).digest("hex");
const heads = bundled.map(({ name, version, license }) => `${name} ${version} (${license})`);
const texts = [...new Set(bundled.map(({ text }) => text))];
writeFileSync(
  `${ASSETS}/codemirror.txt`,
  [`codemirror.js has, unchanged and bundled:`, ...heads, "", `sha256 ${hash}`, "", texts.join("\n\n----\n\n"), ""].join("\n"),
);
