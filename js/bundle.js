// Bundles src into what Python loads: `make bundle`, or npm run bundle in this folder. With --check it writes
// nothing, and fails where a bundle is not what the sources say. The head of each bundle holds a digest of all sources and of the rest of
// the bundle, by which tests/test_bundles.py knows as well, without Node.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const PACKAGE = "../mha_viz";
const BUNDLES = {
  "components/links.js": { entry: "src/page/links.js", format: "esm" },
  "components/live.js": { entry: "src/page/live.js", format: "esm" },
  "components/saver.js": { entry: "src/page/saver.js", format: "esm" },
  "components/stepper.js": { entry: "src/page/stepper.js", format: "esm" },
  "components/theme.js": { entry: "src/page/theme.js", format: "esm" },
  "components/width.js": { entry: "src/page/width.js", format: "esm" },
  "export/picture.js": { entry: "src/picture/for_command.js", format: "iife", globalName: "mha" }, // loaded by a <script>
};

const sources = readdirSync("src", { recursive: true })
  .map((path) => `src/${path.replaceAll("\\", "/")}`)
  .filter((path) => path.endsWith(".js"))
  .sort()
  .map((path) => `${path}\n${textOf(path)}`)
  .join("");
const stale = [];

for (const [path, { entry, ...options }] of Object.entries(BUNDLES)) {
  // To be read as well: neither made smaller nor written for older browsers.
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    charset: "utf8",
    target: "esnext",
    ...options,
  });
  const bundled = outputFiles[0].text;
  const digest = createHash("sha256").update(sources).update(bundled).digest("hex");
  const text = `// Bundled from js/${entry} by make bundle. Its comments stand there, and changes belong there.\n// sha256 ${digest}\n${bundled}`;
  const file = `${PACKAGE}/${path}`;
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (textOf(file) !== text) stale.push(path);
}

if (stale.length) {
  console.error(`not what js/src says: ${stale.join(", ")}. Run make bundle.`);
  process.exitCode = 1;
}

function textOf(path) {
  return readFileSync(path, "utf8").replaceAll("\r\n", "\n");
}
