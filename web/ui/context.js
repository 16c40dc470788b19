// How much of the model's context the chat takes.

import { answerIn } from "./answer_queue.js";
import { promptOf } from "./answers.js";
import { shown } from "./conversation.js";
import { page, t } from "./page.js";

const TIGHT = 0.85; // of the context

async function showContext() {
  const growing = answerIn(shown);
  if (growing?.prompt) showUsed(growing.prompt + growing.tokens);
  if (!inpage.loaded || growing) return; // Stop must find its own call at work, not this one
  const { prompt_tokens: used } = await inpage.countTokens(promptOf(shown)).catch(() => ({ prompt_tokens: 0 }));
  if (!answerIn(shown)) showUsed(used);
}

/** @param {number} used */
function showUsed(used) {
  const max = inpage.loaded?.context ?? 0;
  const high = max * TIGHT;
  page.contextText.textContent = used > high ? t`Context: ${used} of ${max} tokens, nearly full` : t`Context: ${used} of ${max} tokens`;
  Object.assign(page.contextMeter, { max, high, optimum: 0, value: used });
}

for (const change of ["answergrows", "chatschange", "modelchange"]) addEventListener(change, showContext);
showContext();
