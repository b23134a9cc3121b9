// Clients of ioredis that count in their own keys until stdin ends: see scripts/deploys.
//
//   ioredis.js PORT CLIENTS FIRST
//
// Prints a JSON object: how often they counted, what was wrong with a reply, and the errors.
const Redis = require("ioredis");
const [port, clients, first] = process.argv.slice(2).map(Number);
const result = { counted: 0, wrong: [], errors: [] };
let over = false;

async function count(number) {
  // The defaults of the library: RESP2. It connects again by itself.
  const client = new Redis(port);
  client.on("error", () => {});
  const key = `node:${number}`;
  let expected = 0;
  while (!over) {
    let reply;
    try {
      reply = await client.incr(key);
    } catch (error) {
      result.errors.push(String(error));
      expected = null;
      continue;
    }
    expected = expected === null ? reply : expected + 1;
    if (reply !== expected) {
      result.wrong.push(`${key}: ${reply} instead of ${expected}`);
      expected = reply;
    }
    result.counted += 1;
  }
  client.disconnect();
}

const all = Array.from({ length: clients }, (_, n) => count(first + n));
console.log("started");
process.stdin.on("end", async () => {
  over = true;
  await Promise.all(all);
  console.log(JSON.stringify(result));
});
process.stdin.resume();
