// Drives inpage. This script is added to the product's own page and uses nothing but globalThis.inpage.

import { offer } from "./common.js";

async function api() {
  while (!globalThis.inpage) await new Promise((resolve) => { setTimeout(resolve); });
  return globalThis.inpage;
}

/** @type {import("./common.js").Engine["run"]} */
async function run({ ids }, count, onTokens) {
  const { inpage } = globalThis;
  const chunks = await inpage.completions.create({
    prompt_token_ids: ids,
    temperature: 0,
    ignore_eos: true,
    max_tokens: count,
    stream: true,
    stream_options: { include_usage: true },
  });
  let told;
  for await (const { choices, usage } of chunks) {
    if (choices[0]?.token_ids.length) onTokens(choices[0].token_ids);
    told = usage ?? told;
  }
  return told;
}

// GPU milliseconds of decoding one token, by kind of op.
const OPS = `
[{"op": t.kind, "count": t.count, "ms": t.microseconds / 1000, "share": t.share}
 for t in (await model.profile(128)).kinds] if "timestamp-query" in device.features else None
`;

offer({
  ready: api().then((inpage) => inpage.ready),
  load: ({ model }) => globalThis.inpage.load(model),
  run,
  gpuBytes: () => globalThis.inpage.python("graph.memory.peak"),
  gpuOps: () => globalThis.inpage.python(OPS),
  async facts() {
    const { versions, phases } = await globalThis.inpage.ready;
    return { version: versions.inpage, phases };
  },
});
