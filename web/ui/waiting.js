// Questions that are sent before their answer can be written: each says what it waits for. Fetched when there is one.

/** @import { Answer } from "./records.js" */

import { answers, paint } from "./answer_queue.js";
import { titleOf } from "./chat_titles.js";
import { isListed, loading } from "./model.js";
import { page, t } from "./page.js";

/** What is missing while there is no model. */
function readiness() {
  const { load, progress, status } = page;
  if (loading) return progress.value ? t`Getting ready: ${Math.round(progress.value * 100)} %` : t`Getting ready…`;
  return isListed ? t`Waiting for a model: press “${load.textContent}”` : t`Getting ready: ${status.textContent}`;
}

export function showWaiting() {
  const [first, ...others] = answers;
  if (first && !inpage.loaded) first.status = readiness();
  for (const each of others) each.status = first.chat === each.chat ? t`Waiting for the answer above` : t`Waiting for the answer in “${titleOf(first.chat)}”`;
  for (const each of answers) paint(() => each.painted?.grow());
}

/**
 * Also until it is stopped.
 * @param {Answer} mine
 * @returns {Promise<void>}
 */
export const untilLoaded = ({ abort: { signal } }) => new Promise((resolve) => {
  const settled = new AbortController();
  const look = () => {
    if (!inpage.loaded && !signal.aborted) return showWaiting();
    settled.abort();
    resolve();
  };
  addEventListener("modelchange", look, settled);
  signal.addEventListener("abort", look, settled);
  look();
});

addEventListener("readiness", showWaiting);
addEventListener("chatschange", showWaiting);
