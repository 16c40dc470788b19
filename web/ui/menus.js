// Menus below their buttons: that of a chat in the list, and that of an answer.

/** @import { Chat, ChatMessage } from "./chats.js" */

import { exportChats } from "./chat_files.js";
import { saveChat } from "./chat_storage.js";
import { allChats, isPinned, pin, shown, versionsOf } from "./chats.js";
import { copyOf, page, partOf, styleSheet } from "./elements.js";
import { emit, on } from "./events.js";
import { script } from "./lazy.js";
import { loadFrom, models } from "./models/models.js";
import { arrived } from "./notices.js";
import { copyLink, exportMarkdown, exportPage } from "./sharing.js";
import { t } from "./wording.js";

const GAP = 4; // pixels

const { chatTitle, folder, folderName, folders } = page;
const loadStyles = styleSheet("tokens.css");
const loadWhy = script(() => import("./tokens/why.js"));
const loadCompare = script(() => import("./tokens/compare.js"));

/**
 * Opens a menu below its button; gives a function that makes what an item does, which closes it first.
 * @type {(menu: HTMLElement, opener: HTMLButtonElement) => (item: HTMLElement, then: () => void) => void}
 */
function openMenu(menu, opener) {
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
  menu.style.setProperty("top", `${bottom + GAP + height < innerHeight ? bottom + GAP : Math.max(GAP, top - GAP - height)}px`);
  items()[0]?.focus();
  return (item, then) => {
    item.onclick = () => {
      menu.hidePopover();
      then();
    };
  };

  function items() {
    return /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("[role=menuitem]:not([hidden])")]);
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const all = items();
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab") menu.hidePopover();
    if (to === undefined) return;
    event.preventDefault();
    all.at(to % all.length)?.focus();
  }
}

// ---- of a chat: its name, its folder, pins, sharing, delete

/** Opens the menu of a chat. @type {(opener: HTMLButtonElement, chat: Chat) => Promise<void>} */
export async function openChatMenu(opener, chat) {
  await loadStyles().catch(() => {}); // plain, it can be used
  const menu = copyOf(page.chatMenu);
  const isKept = !chat.temporary;
  for (const name of ["pin", "unpin"]) partOf(menu, name).hidden = !isKept || isPinned(chat) === (name === "pin");
  partOf(menu, "folder").hidden = !isKept;
  partOf(menu, "delete").hidden = chat === shown && document.body.hasAttribute("data-running");
  const does = openMenu(menu, opener);
  does(partOf(menu, "rename"), () => rename(chat));
  does(partOf(menu, "pin"), () => pin(chat));
  does(partOf(menu, "unpin"), () => pin(chat));
  does(partOf(menu, "folder"), () => chooseFolder(chat));
  does(partOf(menu, "export"), () => exportChats([chat]));
  does(partOf(menu, "markdown"), () => exportMarkdown(chat));
  does(partOf(menu, "web-page"), () => exportPage(chat));
  does(partOf(menu, "link"), () => copyLink(chat));
  does(partOf(menu, "delete"), () => emit("chatunwanted", chat));
}

/** @param {Chat} chat */
function rename(chat) {
  emit("chatwanted", chat); // on a phone, the list covers its name until then
  chatTitle.select();
}

/** Asks for the chat's folder; none where the field is left empty. @param {Chat} chat */
function chooseFolder(chat) {
  folderName.value = chat.folder;
  const names = new Set(allChats().map((each) => each.folder).filter(Boolean));
  folders.replaceChildren(...[...names].sort().map((name) => new Option(name, name)));
  folder.returnValue = "";
  folder.onclose = () => {
    if (folder.returnValue !== "move") return;
    chat.folder = folderName.value.trim();
    chat.set.folder = Date.now();
    saveChat(chat);
    emit("chatschange");
  };
  folder.showModal();
  folderName.select();
}

// ---- of an answer: what is asked for seldom

/** Opens the menu of an answer; `again` has it answered anew, and gives the new answer. @type {(button: Element, message: ChatMessage, again: () => ChatMessage) => Promise<void>} */
export async function openAnswerMenu(button, message, again) {
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
  for (const name of ["lens", "attention"]) does(partOf(menu, name), () => emit("panelwanted", { name, settings: { message: message.id } }));
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
