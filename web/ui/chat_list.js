// The list of chats, and the name of the one that is shown.

import { answerIn, answers } from "./answer_queue.js";
import { titleOf } from "./chat_titles.js";
import { allChats } from "./chats.js";
import { shown } from "./conversation.js";
import { copyOf, page, partOf, t } from "./page.js";
import { openChat } from "./sidebar.js";

const { chatTitle, chatTools } = page;

export function listChats() {
  if (!chatTitle.matches(":focus")) chatTitle.value = titleOf(shown);
  document.title = shown.messages.length ? `${titleOf(shown)} · inpage` : "inpage";
  page.chats.replaceChildren(...allChats().map((chat) => {
    const row = copyOf(page.chatRow);
    const button = partOf(row, "open");
    button.textContent = titleOf(chat);
    button.onclick = () => openChat(chat);
    button.ariaCurrent = String(chat === shown);
    const mine = answerIn(chat);
    const mark = partOf(row, "mark");
    mark.hidden = !mine;
    mark.title = mark.ariaLabel = mine === answers[0] ? t`Being answered` : t`Waiting for its answer`;
    if (chat === shown) row.append(chatTools);
    row.dataset.id = chat.id;
    return row;
  }));
  dispatchEvent(new Event("chatslisted"));
}

addEventListener("chatschange", listChats);
listChats();
