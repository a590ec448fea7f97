// Finds the program of this platform as Node finds packages, and becomes it. Node before 22.15 cannot: there it
// stays, passes signals on, and exits as the program does.
const { spawn } = require("node:child_process");

let name = `tool-proxy-${process.platform}-${process.arch}`;
if (process.platform === "linux") {
  name += process.report.getReport().header.glibcVersionRuntime ? "-gnu" : "-musl";
}
let program;
try {
  program = require.resolve(`${name}/bin/tool-proxy`);
} catch {
  console.error(
    `error: the package ${name} is not installed\n` +
      "hint: install tool-proxy again without --omit=optional; if there is no such package, there is no program for this platform",
  );
  process.exit(1);
}
const words = process.argv.slice(2);
if (process.execve) {
  process.execve(program, ["tool-proxy", ...words], process.env);
}
const child = spawn(program, words, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: ${program}: ${error.message}`);
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
