// The editor of a cell: CodeMirror, with names from the live interpreter. It stands in a shadow root, for there its styles are sheets of
// their own, as the page's policy wants them.

import { lazy, library } from "../lazy.js";

/** @import { CompletionContext } from "@codemirror/autocomplete" */

/**
 * @typedef {object} Editor
 * @property {() => string} text
 * @property {() => void} focus
 */

/**
 * @typedef {object} Wanted
 * @property {string} text
 * @property {string} label for screen readers
 * @property {() => void} onChange
 * @property {(isNext: boolean) => void} onRun `isNext`: and go on to the next cell
 */

const PARTS = /** @type {const} */ (["autocomplete", "commands", "language", "python", "state", "view"]);

const load = lazy(async () => {
  const [autocomplete, commands, language, python, state, view] = await Promise.all(PARTS.map((name) => library(`codemirror-${name}.js`)()));
  const { tags } = await library("lezer-highlight.js")();
  return /** @type {any} */ ({ ...autocomplete, ...commands, ...language, ...python, ...state, ...view, tags });
});

/** Puts an editor into an element. @type {(host: HTMLElement, wanted: Wanted) => Promise<Editor>} */
export async function editorIn(host, { text, label, onChange, onRun }) {
  const cm = await load();
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const run = (/** @type {boolean} */ isNext) => ({ run: () => { onRun(isNext); return true; } });
  const view = new cm.EditorView({
    root,
    parent: root,
    doc: text,
    extensions: [
      cm.keymap.of([{ key: "Mod-Enter", ...run(false) }, { key: "Shift-Enter", ...run(true) }]),
      cm.history(),
      cm.drawSelection(),
      cm.indentUnit.of("    "),
      cm.indentOnInput(),
      cm.bracketMatching(),
      cm.closeBrackets(),
      cm.autocompletion({ icons: false }),
      cm.python(),
      cm.pythonLanguage.data.of({ autocomplete: namesAt }),
      cm.syntaxHighlighting(colours(cm)),
      cm.EditorView.lineWrapping,
      cm.keymap.of([...cm.closeBracketsKeymap, ...cm.completionKeymap, ...cm.defaultKeymap, ...cm.historyKeymap, cm.indentWithTab]),
      cm.EditorView.contentAttributes.of({ "aria-label": label }),
      cm.EditorView.updateListener.of((/** @type {any} */ { docChanged }) => { if (docChanged) onChange(); }),
      cm.EditorView.theme(LOOKS),
    ],
  });
  return { text: () => view.state.doc.toString(), focus: () => view.focus() };
}

/** Asks the interpreter; it answers when no code keeps it busy. @param {CompletionContext} context */
async function namesAt(context) {
  const before = context.state.sliceDoc(0, context.pos);
  if (!context.explicit && !/[\w.(]$/.test(before)) return null;
  const { begin, options } = await inpage.call("complete_code", { text: before });
  if (!options.length || (!context.explicit && begin === before.length && !before.endsWith("."))) return null;
  return { from: begin, options, validFor: /^\w*$/ };
}

const LOOKS = {
  "&": { fontSize: "0.86rem", color: "var(--ink)", backgroundColor: "transparent" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", lineHeight: "1.5", padding: "0.55rem 0", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 0.8rem" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--tint) !important" },
  "&.cm-focused .cm-matchingBracket": { background: "var(--soft)", outline: "1px solid var(--line)" },
  ".cm-tooltip": { background: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "0.5rem", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "14rem" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.75" },
  ".cm-completionInfo": { padding: "0.4rem 0.7rem", fontFamily: "system-ui, sans-serif", fontSize: "0.8rem" },
};

/** The page's own colours of code (style.css). @param {any} cm */
function colours({ HighlightStyle, tags: tag }) {
  return HighlightStyle.define([
    { tag: [tag.comment, tag.quote], color: "var(--code-comment)" },
    { tag: [tag.keyword, tag.operatorKeyword, tag.controlKeyword, tag.definitionKeyword, tag.moduleKeyword], color: "var(--code-keyword)" },
    { tag: [tag.string, tag.special(tag.string)], color: "var(--code-string)" },
    { tag: [tag.number, tag.bool, tag.null, tag.self], color: "var(--code-number)" },
    { tag: [tag.function(tag.variableName), tag.function(tag.propertyName), tag.className, tag.meta], color: "var(--code-name)" },
  ]);
}
