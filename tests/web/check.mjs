// Checks the files that the page consists of: types, vendored packages, sizes. Exit code 1: something is wrong.
//
//     check.mjs ASSETS    in a folder with the packages of package.json

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";

// The lines of the page, rounded up to the next 50: of issue 61.
const LINES_MAX = 2_400;
// Of issue 34.
const COMPRESSED_BYTES_MAX = 150_000;

const assets = resolve(process.argv[2]);
const packages = resolve("node_modules");
const failures = [];

const files = readdirSync(assets, { recursive: true, withFileTypes: true }).filter((it) => it.isFile()).map((it) => join(it.parentPath, it.name));
const own = files.filter((it) => it.endsWith(".js") && !it.includes("/vendor/"));

// Types: the packages have their own, in place of the vendored files.
const scratch = mkdtempSync(join(process.cwd(), "types-"));
try {
  cpSync(assets, scratch, { recursive: true });
  cpSync(join(assets, "..", "types.d.ts"), join(scratch, "types.d.ts"));
  for (const [file, text] of [
    ["preact", 'export * from "preact";'],
    ["hooks", 'export * from "preact/hooks";'],
    ["htm", 'export { default } from "htm";'],
  ]) {
    rmSync(join(scratch, "vendor", `${file}.js`));
    writeFileSync(join(scratch, "vendor", `${file}.d.ts`), text);
  }
  const options = {
    strict: true, allowJs: true, checkJs: true, noEmit: true, noUnusedLocals: true, noUnusedParameters: true, skipLibCheck: true,
    target: "es2023", module: "esnext", moduleResolution: "bundler", lib: ["es2024", "dom", "dom.iterable", "dom.asynciterable"], types: [],
  };
  writeFileSync(join(scratch, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["**/*.js", "types.d.ts", "vendor/*.d.ts"] }));
  execFileSync(join(packages, ".bin/tsc"), ["--pretty", "false", "-p", scratch], { encoding: "utf8" });
} catch (error) {
  failures.push(`types:\n${error.stdout ?? error}`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

// Vendored files are those of the packages, but for their first line, the names of their maps, and imports without a file.
for (const [file, source] of [["preact.js", "preact/dist/preact.mjs"], ["hooks.js", "preact/hooks/dist/hooks.mjs"], ["htm.js", "htm/dist/htm.mjs"]]) {
  const here = readFileSync(join(assets, "vendor", file), "utf8").replace(/^.*\n/, "").trim();
  const there = readFileSync(join(packages, source), "utf8").replace(/^\/\/# sourceMappingURL.*$/m, "").replaceAll('from"preact"', 'from"./preact.js"').trim();
  if (here !== there) failures.push(`vendor/${file} differs from ${source}`);
}

// Text never becomes markup or code, and no style is markup.
for (const file of files.filter((it) => /\.(js|html)$/.test(it))) {
  const text = readFileSync(file, "utf8");
  const isVendor = file.includes("/vendor/");
  const banned = isVendor ? /\beval\(|new Function\(/ : /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(|\sstyle="/;
  const found = text.match(banned);
  if (found) failures.push(`${relative(assets, file)}: \`${found[0]}\` is not allowed`);
}

const lines = own.reduce((sum, it) => sum + readFileSync(it, "utf8").split("\n").length - 1, 0);
const bytes = files.reduce((sum, it) => sum + gzipSync(readFileSync(it), { level: 9 }).length, 0);
if (lines > LINES_MAX) failures.push(`${lines} lines of JavaScript, at most ${LINES_MAX}`);
if (bytes > COMPRESSED_BYTES_MAX) failures.push(`${bytes} bytes compressed, at most ${COMPRESSED_BYTES_MAX}`);
console.log(`${lines} lines of JavaScript, ${bytes} bytes compressed`);

for (const failure of failures) console.log(`FAILED ${failure}`);
process.exit(failures.length ? 1 : 0);
