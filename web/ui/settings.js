// The panel of settings: what is typed counts at once, if it can. Fetched when somebody opens it.

import { store } from "./answers.js";
import { shown } from "./conversation.js";
import { keep, page } from "./page.js";
import { chosen } from "./options.js";

const { settingsForm: form, system } = page;
const keepChosen = () => keep("inpageSettings", JSON.stringify({ version: 1, chosen: chosen() }));

form.oninput = keepChosen;
page.resetSettings.onclick = () => {
  form.reset();
  system.value = shown.system; // is the chat's own
  keepChosen();
};
system.onchange = () => {
  shown.system = system.value.trim();
  shown.set.system = Date.now();
  if (shown.messages.length) store(shown);
};
