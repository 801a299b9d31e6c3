// What a user writes after `npm install` of the package: run by the proof in a folder that has nothing else.
import { Loxodon, NotFoundError } from "@loxodon/client";

const loxodon = new Loxodon(); // LOXODON_URL, LOXODON_API_KEY
const scope = { user_id: "npm" };

await loxodon.memory.add([{ role: "user", content: "I moved to Lisbon last month, I work at Acme now." }], scope);
const found = await loxodon.memory.search("Where does she work?", scope);
console.log(found.results[0].memory);
for await (const each of loxodon.memory.list(scope)) console.log(each.id, each.memory);
try {
  await loxodon.memory.get("00000000-0000-0000-0000-000000000000");
} catch (error) {
  if (!(error instanceof NotFoundError)) throw error;
  console.log(error.code, error.message, error.requestId);
}
