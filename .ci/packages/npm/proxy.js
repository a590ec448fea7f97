#!/usr/bin/env node
// Runs the program of this platform with our streams, passes signals on, and exits as it does.
const { spawn } = require("node:child_process");

const name = `proxy-mcp-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/proxy`);
} catch {
  console.error(
    `proxy: the package ${name} is not installed; install again without --omit=optional, or there is none for this platform`,
  );
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`proxy: ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
