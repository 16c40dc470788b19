// The menu of an answer: what is asked for seldom.

/** @import { ChatMessage } from "./chats.js" */

import { shown } from "./chats.js";
import { copyOf, page, partOf } from "./elements.js";
import { script } from "./lazy.js";
import { openMenu } from "./menus.js";
import { versionsOf } from "./message_tree.js";
import { loadFrom, models } from "./models.js";
import { arrived } from "./notices.js";
import { openPanel } from "./panels.js";
import { styleSheet } from "./styles.js";
import { t } from "./wording.js";

const loadStyles = styleSheet("tokens.css");
const loadWhy = script(() => import("./why.js"));
const loadCompare = script(() => import("./compare.js"));

/** Opens the menu below its button; `again` has the message answered anew. @type {(button: Element, message: ChatMessage, again: () => void) => Promise<void>} */
export async function open(button, message, again) {
  await loadStyles().catch(() => {});
  const menu = copyOf(page.messageMenu);
  partOf(menu, "compare").hidden = versionsOf(shown, message).length < 2;
  const others = models.filter(({ path, stored: isHere }) => isHere && path !== inpage.loaded?.path);
  const items = others.map(({ name, path }) => ({ name, path, item: Object.assign(document.createElement("button"), { type: "button", role: "menuitem", textContent: t`Regenerate with ${name}` }) }));
  menu.append(...items.map(({ item }) => item));
  const does = openMenu(menu, /** @type {HTMLButtonElement} */ (button));
  does(partOf(menu, "why"), async () => (await arrived(loadWhy()))?.open(message));
  does(partOf(menu, "compare"), async () => (await arrived(loadCompare()))?.open(message));
  for (const { name, path, item } of items) {
    does(item, async () => {
      await loadFrom(path, name);
      if (inpage.loaded?.path === path) again();
    });
  }
  for (const name of ["lens", "attention"]) does(partOf(menu, name), () => openPanel(name, { message: message.id }));
}
