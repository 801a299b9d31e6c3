// Writes src/schema.ts (types of every route) and src/routes.ts (which routes take an Idempotency-Key) from the
// service's OpenAPI document: docs/openapi.json of the repository, or the file named by LOXODON_OPENAPI.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const document = process.env.LOXODON_OPENAPI ?? new URL("../../../docs/openapi.json", import.meta.url);
const read = JSON.parse(await readFile(document, "utf8"));
const source = new URL("../src/", import.meta.url);
const head = "// Made from docs/openapi.json by scripts/generate.mjs.\n";

// Errors have one shape, which the client throws: without them at every route the types are half as long.
for (const { responses } of Object.values(read.paths).flatMap(Object.values)) {
  for (const status of Object.keys(responses)) if (!status.startsWith("2")) delete responses[status];
}

await writeFile(new URL("schema.ts", source), head + astToString(await openapiTS(read)));

const keyed = Object.entries(read.paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, operation]) => (operation.parameters ?? []).some((each) => each.name === "Idempotency-Key"))
    .map(([method]) => `  "${method.toUpperCase()} ${path}",`),
);
await writeFile(
  new URL("routes.ts", source),
  `${head}/** Routes that answer a repeated Idempotency-Key with what they answered first. */\n` +
    `export const KEYED: ReadonlySet<string> = new Set([\n${keyed.join("\n")}\n]);\n`,
);
