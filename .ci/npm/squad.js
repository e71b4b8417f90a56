#!/usr/bin/env node
// Starts the squad binary of this platform's package. Its path is on your PATH with `cargo` or `pip`, without Node's
// start each time.
"use strict";
const { spawnSync } = require("node:child_process");

const name = `squad-agents-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/${process.platform === "win32" ? "squad.exe" : "squad"}`);
} catch {
  console.error(`error: there is no package ${name} beside this one\nhint: install again without --omit=optional; other ways: README.md`);
  process.exit(4);
}
// The terminal sends its signals to squad too, which ends on its own.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
const ended = spawnSync(binary, process.argv.slice(2), { stdio: "inherit" });
if (ended.error) {
  console.error(`error: ${ended.error.message}`);
  process.exit(4);
}
process.exit(ended.status ?? 128);
