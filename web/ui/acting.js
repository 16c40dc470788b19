// What is pressed in the conversation: the buttons of a message, an example prompt. Fetched once the page stands.

import { shown, write } from "./conversation.js";
import { lazy, page } from "./page.js";
import { pathOf } from "./tree.js";

const turns = lazy(() => import("./turns.js"));

page.messages.onclick = ({ target }) => {
  /** @type {HTMLElement | null} */
  const button = /** @type {Element} */ (target).closest("[data-act]");
  const { id } = button?.closest("article")?.dataset ?? {};
  const message = pathOf(shown).find((each) => each.id === id);
  if (button && message) turns.act(button, message);
};
page.examples.onclick = ({ target }) => {
  if (!(target instanceof HTMLButtonElement)) return;
  write(target.textContent);
  page.composer.requestSubmit();
};
