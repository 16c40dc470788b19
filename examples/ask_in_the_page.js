// For the console of a page that `make serve` serves, or a script of your own in it: an answer as it is
// written, then one as JSON of a given shape.

const { inpage } = globalThis;
await inpage.ready;
if (!inpage.loaded) await inpage.load("SmolLM2-135M-Instruct");

const messages = [{ role: "user", content: "What is gravity?" }];
let answer = "";
for await (const { choices } of inpage.chat.completions.create({ messages, max_tokens: 40, stream: true })) {
  answer += choices[0].delta.content ?? "";
}
console.log(answer);

const schema = { type: "object", properties: { mass: { type: "integer", minimum: 0, maximum: 99 } }, required: ["mass"] };
const asJson = await inpage.chat.completions.create({
  messages,
  response_format: { type: "json_schema", json_schema: { name: "answer", schema } },
});
console.log(asJson.choices[0].message.content);
