// Builds the program under test once, before the tests begin: a compile from nothing takes
// longer than a test or a hook may. TENON_BIN names another program.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

export default function build(): (() => void) | undefined {
  if (process.env.TENON_BIN) return;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tenon-bin-"));
  const program = path.join(folder, "tenon");
  execFileSync("go", ["build", "-o", program, "./cmd/tenon"], {
    cwd: path.resolve(import.meta.dirname, "../../.."),
    stdio: "inherit",
  });
  process.env.TENON_BIN = program; // the processes of the tests inherit it
  return () => fs.rmSync(folder, { recursive: true, force: true });
}
