// The dialog about tools: whether the model may call any in this chat, which there are, and what may run without asking.

import { store } from "../chat_storage.js";
import { shown } from "../chats.js";
import { page, styleSheet } from "../elements.js";
import { emit, on } from "../events.js";
import { t } from "../wording.js";
import { known } from "./built_in.js";
import { showServers, tickOf } from "./servers.js";

const { forgetPermissions, toolRows, toolsUnfit, useTools } = page;
const loadStyles = styleSheet("tools.css");

/** Fills the dialog in before it is shown. */
export async function prepare() {
  await loadStyles().catch(() => {}); // plain, it can be used
  show();
  showServers();
}

function show() {
  const { loaded } = inpage;
  const isFit = !!loaded?.calls_tools;
  toolsUnfit.hidden = isFit;
  toolsUnfit.textContent = loaded ? t`${loaded.name} was not made to use tools: its chat template does not know them. Load another model under “Models”, such as Qwen3.`
    : t`No model is loaded yet: whether it can use tools is known then.`;
  useTools.disabled = !isFit;
  useTools.checked = shown.tools.isOn;
  forgetPermissions.hidden = !shown.tools.always.length;
  toolRows.replaceChildren(...known().map(({ id, title, about }) => tickOf(id, title, about)));
}

/** @param {Partial<typeof shown.tools>} change */
function changeTools(change) {
  shown.tools = { ...shown.tools, ...change };
  shown.set.tools = Date.now();
  if (shown.messages.length) store(shown);
  else emit("chatschange");
  show();
}

useTools.onchange = () => changeTools({ isOn: useTools.checked });
forgetPermissions.onclick = () => {
  changeTools({ always: [] });
  useTools.focus();
};
on("modelchange", show);
