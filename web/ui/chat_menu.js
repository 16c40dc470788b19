// The menu of a chat in the list: its name, its folder, pins, export, delete.

/** @import { Chat } from "./chats.js" */

import { exportChats, exportMarkdown } from "./chat_files.js";
import { saveChat } from "./chat_storage.js";
import { allChats, shown } from "./chats.js";
import { copyOf, page, partOf } from "./elements.js";
import { emit } from "./events.js";
import { openMenu } from "./menus.js";
import { isPinned, pin } from "./pins.js";
import { styleSheet } from "./styles.js";

const { chatTitle, folder, folderName, folders } = page;
const loadStyles = styleSheet("tokens.css");

/** Opens the menu below its button. @type {(opener: HTMLButtonElement, chat: Chat) => Promise<void>} */
export async function open(opener, chat) {
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
