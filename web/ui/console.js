// The Python console: runs code in the worker's interpreter and shows what it gives. Fetched when somebody opens it.

import { page, t } from "./page.js";

const { code, consoleForm, example, output } = page;

consoleForm.onsubmit = async (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  output.textContent = t`Running…`;
  const value = await inpage.python(code.value).catch((error) => error.traceback ?? error.message);
  output.textContent = typeof value === "string" ? value : JSON.stringify(value, null, 1);
};
code.onkeydown = (/** @type {KeyboardEvent} */ { key, ctrlKey, metaKey }) => {
  if (key === "Enter" && (ctrlKey || metaKey)) consoleForm.requestSubmit();
};
const showExample = () => { code.value = example.value; };
example.onchange = showExample;
showExample();
