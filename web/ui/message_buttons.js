// The buttons of messages: what they do comes when the first is pressed (message_actions.js). An example is asked.

import { shown } from "./chats.js";
import { write } from "./composer.js";
import { page } from "./elements.js";
import { on } from "./events.js";
import { script } from "./lazy.js";
import { pathOf } from "./message_tree.js";
import { arrived } from "./notices.js";

const loadActions = script(() => import("./message_actions.js"));
const loadCertainty = script(() => import("./certainty.js"));

/** Does what a button of a message says. @param {Element} button perhaps of a message that is no longer shown */
export async function act(button) {
  const name = button.getAttribute("data-act") ?? "";
  const id = button.closest("article")?.dataset.id;
  const message = pathOf(shown).find((each) => each.id === id);
  if (name === "ask") {
    write(button.textContent);
    page.composer.requestSubmit();
  } else if (message) (await arrived(loadActions()))?.actions[name](message, button);
}

on("certaintyshown", async ({ article, message }) => (await arrived(loadCertainty()))?.show(article, message));
