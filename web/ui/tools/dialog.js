// The dialog about tools: whether the model may call any in this chat, which there are, and what may run without asking.

import { setInChat } from "../chat_storage.js";
import { shown } from "../chats.js";
import { page, styleSheet } from "../elements.js";
import { on } from "../events.js";
import { t } from "../wording.js";
import { known } from "./built_in.js";
import { showServers, tickOf } from "./servers.js";

const { forgetPermissions, toolRows, toolsJson, toolsUnfit, useTools } = page;
const loadStyles = styleSheet("tools.css");

/** Fills the dialog in before it is shown. */
export async function prepare() {
  await loadStyles().catch(() => {}); // plain, it can be used
  show();
  showJson();
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
  setInChat("tools", { ...shown.tools, ...change });
  show();
}

/** Says that a chat has tools or answers in JSON, not both. @param {boolean} [wasOn] JSON, which was switched off just now */
function showJson(wasOn = false) {
  toolsJson.hidden = !shown.json.isOn && !wasOn;
  toolsJson.textContent = wasOn ? t`This chat no longer answers in JSON: a model cannot use tools while it does.`
    : t`This chat answers in JSON. Turning on tools turns that off: a model cannot use tools while it answers in JSON.`;
}

useTools.onchange = () => {
  changeTools({ isOn: useTools.checked });
  if (!shown.tools.isOn || !shown.json.isOn) return;
  setInChat("json", { ...shown.json, isOn: false });
  showJson(true);
};
forgetPermissions.onclick = () => {
  changeTools({ always: [] });
  useTools.focus();
};
on("modelchange", show);
