// The Python console: runs code in the worker's interpreter and shows what it gives.

import { page } from "./page.js";

const { code, consoleForm, example, output } = page;

consoleForm.onsubmit = async (event) => {
  event.preventDefault();
  output.textContent = "Running…";
  const value = await inpage.python(code.value).catch((error) => error.traceback ?? error.message);
  output.textContent = typeof value === "string" ? value : JSON.stringify(value, null, 1);
};
code.onkeydown = ({ key, ctrlKey, metaKey }) => {
  if (key === "Enter" && (ctrlKey || metaKey)) consoleForm.requestSubmit();
};
example.onchange = () => { code.value = example.value; };
example.onchange();
