// The menu of an answer: what is asked for seldom.

/** @import { ChatMessage } from "./chats.js" */

import { shown } from "./chats.js";
import { copyOf, page, partOf } from "./elements.js";
import { on } from "./events.js";
import { lazy } from "./lazy.js";
import { openMenu } from "./menus.js";
import { versionsOf } from "./message_tree.js";
import { loadFrom, models } from "./models.js";
import { arrived } from "./notices.js";
import { openPanel } from "./panels.js";
import { styleSheet } from "./styles.js";
import { t } from "./wording.js";

const loadStyles = styleSheet("tokens.css");
const loadWhy = lazy(() => import("./why.js"));
const loadCompare = lazy(() => import("./compare.js"));

/** Opens the menu below its button; `again` has the message answered anew, and gives the new answer. @type {(button: Element, message: ChatMessage, again: () => ChatMessage) => Promise<void>} */
export async function open(button, message, again) {
  await loadStyles().catch(() => {});
  const menu = copyOf(page.messageMenu);
  partOf(menu, "compare").hidden = versionsOf(shown, message).length < 2;
  const others = models.filter(({ path, stored: isHere }) => isHere && path !== inpage.loaded?.path);
  const itemOf = (/** @type {string} */ words) => Object.assign(document.createElement("button"), { type: "button", role: "menuitem", textContent: words });
  const items = others.map(({ name, path }) => ({ name, path, again: itemOf(t`Regenerate with ${name}`), beside: itemOf(t`Compare with ${name}`) }));
  menu.append(...items.flatMap((each) => [each.again, each.beside]));
  const does = openMenu(menu, /** @type {HTMLButtonElement} */ (button));
  does(partOf(menu, "why"), async () => (await arrived(loadWhy()))?.open(message));
  does(partOf(menu, "compare"), async () => (await arrived(loadCompare()))?.open(message));
  for (const { name, path, again: item, beside } of items) {
    does(item, () => answerWith(path, name, again));
    does(beside, async () => {
      const answer = await answerWith(path, name, again);
      if (answer) compareOnceWritten(answer);
    });
  }
  for (const name of ["lens", "attention"]) does(partOf(menu, name), () => openPanel(name, { message: message.id }));
}

/** Has another model answer in place of the one in use: memory need not suffice for both. @type {(path: string, name: string, again: () => ChatMessage) => Promise<ChatMessage | undefined>} */
async function answerWith(path, name, again) {
  await loadFrom(path, name);
  return inpage.loaded?.path === path ? again() : undefined;
}

/** Shows an answer beside the version before it, as soon as it is written. @param {ChatMessage} answer */
function compareOnceWritten(answer) {
  const heard = new AbortController();
  on("answerwritten", async (written) => {
    if (written !== answer) return;
    heard.abort();
    if (answer.content && shown.messages.includes(answer)) (await arrived(loadCompare()))?.open(answer);
  }, heard);
}
