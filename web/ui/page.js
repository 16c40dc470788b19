// What every part of the page uses.

/** The page's elements by their id. */
export const page = new Proxy({}, { get: (_, id) => document.getElementById(id) });

export const copyOf = (template) => template.content.firstElementChild.cloneNode(true);

export const line = (...parts) => parts.filter(Boolean).join(" · ");

/** A line above the conversation until it is dismissed; with `undo`, a button for that. */
export function notify(text, undo) {
  const notice = copyOf(page.notice);
  const [words, undoButton] = notice.children;
  words.textContent = text;
  undoButton.hidden = !undo;
  notice.onclick = ({ target }) => {
    if (!target.closest("button")) return;
    notice.remove();
    page.draft.focus();
    if (target === undoButton) undo();
  };
  for (const old of page.notices.children) if (old.textContent === notice.textContent) old.remove();
  page.notices.append(notice);
}

export const copyText = (text) => navigator.clipboard.writeText(text).then(
  () => notify("Copied."),
  () => notify("Copying was not allowed: select the text instead."),
);

/** A library from npm. Its URL carries a hash, and site.json knows it. */
export async function library(name) {
  const { vendor } = await (await fetch("site.json")).json();
  return import(new URL(vendor + name, document.baseURI));
}

/** What survives a reload. */
export let kept = {};
try {
  kept = localStorage;
} catch { /* switched off: nothing survives */ }
