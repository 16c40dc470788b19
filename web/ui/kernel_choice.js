// Which kernels the model in use runs on, in what arithmetic, and what was measured to choose them.

/** @import { LoadedModel } from "../inpage.js" */

import { page } from "./elements.js";
import { on } from "./events.js";
import { decimal, line, t } from "./wording.js";

/** @param {string} chosen */
function whyOf(chosen) {
  switch (chosen) {
    case "measured": return t`measured just now`;
    case "remembered": return t`measured at an earlier load`;
    case "asked for": return t`asked for`;
    default: return t`by what the device says of itself`;
  }
}

/** @param {LoadedModel["kernels"]} kernels */
function arithmeticOf({ wide, one_token: one, many_tokens: many }) {
  if (!wide) return "";
  return line(
    one === "bytes" ? t`one token by bytes, as exact as by floats` : t`one token by floats`,
    many === "bytes" ? t`several tokens by bytes, in 15 bits` : t`several tokens by floats`,
  );
}

function showKernels() {
  const kernels = inpage.loaded?.kernels;
  const { kernelFacts } = page;
  kernelFacts.hidden = !kernels;
  if (!kernels) return;
  kernelFacts.replaceChildren(...[
    line(t`Kernels: ${kernels.name}`, whyOf(kernels.chosen)),
    arithmeticOf(kernels),
    ...kernels.measured.map(({ kernels: name, one_token_us: one, many_tokens_us: many }) => t`A layer by ${name}: ${decimal(one)} µs for one token, ${decimal(many)} µs for 128.`),
  ].filter(Boolean).map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

on("modelchange", showKernels);
showKernels();
