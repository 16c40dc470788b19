// The menu of an answer: what is asked for seldom.

/** @import { ChatMessage } from "./chats.js" */

import { shown } from "./chats.js";
import { copyOf, page, partOf } from "./elements.js";
import { lazy } from "./lazy.js";
import { versionsOf } from "./message_tree.js";
import { arrived } from "./notices.js";
import { openPanel } from "./panels.js";
import { styleSheet } from "./styles.js";

const GAP = 4; // pixels

const loadStyles = styleSheet("tokens.css");
const loadWhy = lazy(() => import("./why.js"));
const loadCompare = lazy(() => import("./compare.js"));

/** Opens the menu below its button. @type {(button: Element, message: ChatMessage) => Promise<void>} */
export async function open(button, message) {
  await loadStyles().catch(() => {});
  const opener = /** @type {HTMLButtonElement} */ (button);
  const menu = copyOf(page.messageMenu);
  partOf(menu, "compare").hidden = versionsOf(shown, message).length < 2;
  partOf(menu, "why").onclick = () => choose(async () => (await arrived(loadWhy()))?.open(message));
  partOf(menu, "compare").onclick = () => choose(async () => (await arrived(loadCompare()))?.open(message));
  for (const name of ["lens", "attention"]) partOf(menu, name).onclick = () => choose(() => openPanel(name, { message: message.id }));
  menu.onkeydown = move;
  menu.ontoggle = (event) => {
    const isOpen = event.newState === "open";
    opener.ariaExpanded = String(isOpen);
    if (isOpen) return;
    if (menu.contains(document.activeElement) || document.activeElement === document.body) opener.focus();
    menu.remove();
  };
  document.body.append(menu);
  menu.showPopover();
  const { right, top, bottom } = opener.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  menu.style.setProperty("left", `${Math.max(GAP, Math.min(right - width, innerWidth - width - GAP))}px`);
  menu.style.setProperty("top", `${bottom + GAP + height < innerHeight ? bottom + GAP : top - GAP - height}px`);
  partOf(menu, "why").focus();

  /** @param {() => void} then */
  function choose(then) {
    menu.hidePopover();
    then();
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const items = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("[role=menuitem]:not([hidden])")]);
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab") menu.hidePopover();
    if (to === undefined) return;
    event.preventDefault();
    items.at(to % items.length)?.focus();
  }
}
