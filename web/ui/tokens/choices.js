// The choices at a token: what else could stand there, how likely that was, and what the settings cut off.

/** @import { Choice, ScoredToken } from "./scores.js" */

import { copyOf, page, partOf } from "../elements.js";
import { percent, probabilityOf, surpriseOf, visible } from "./scores.js";
import { decimal, t } from "../wording.js";

/**
 * @typedef {object} Shown
 * @property {HTMLElement} anchor
 * @property {ScoredToken} token
 * @property {number} vocabulary
 * @property {boolean} isOwn it is of a message of the user's
 * @property {boolean} isPinned it stays until it is closed
 * @property {(choice: Choice) => void} [onChoose]
 */

const HIDE_MILLISECONDS = 220;
const GAP = 6; // pixels
const narrow = matchMedia("(max-width: 40rem)");

const box = copyOf(page.choicesView);
box.popover = "manual";
/** @type {Shown | undefined} */
let shown;
/** @type {HTMLElement | undefined} */
let closed; // the token of choices that were closed over it: it is not pointed at anew
let timer = 0;
document.body.append(box);

/** @param {string} setting */
const cutBy = (setting) => ({
  temperature: t`✂ temperature`, top_k: t`✂ top k`, top_p: t`✂ top p`, min_p: t`✂ min p`,
})[setting] ?? setting;

/** Shows what could stand at a token. @param {Shown} next */
export function showChoices(next) {
  clearTimeout(timer);
  if (next.anchor === closed && !next.isPinned) return;
  closed = undefined;
  if (narrow.matches && !next.isPinned && !next.anchor.matches(":focus")) return; // a sheet would cover what is pointed at
  const isPinned = next.isPinned || (shown?.isPinned && shown.anchor === next.anchor);
  if (shown?.isPinned && !next.isPinned && shown.anchor !== next.anchor && !next.anchor.matches(":focus")) return; // it is only passed by
  shown?.anchor.classList.remove("looked-at");
  shown = { ...next, isPinned: !!isPinned };
  const { anchor, token, isOwn, onChoose } = shown;
  anchor.classList.add("looked-at");
  partOf(box, "token").textContent = visible(token);
  partOf(box, "share").textContent = percent(probabilityOf(token));
  partOf(box, "facts").textContent = factsOf(shown);
  const rows = token.best.some(({ id }) => id === token.id) ? token.best : [...token.best, token];
  partOf(box, "rows").replaceChildren(...rows.map((choice) => rowOf(choice, token, onChoose)));
  partOf(box, "hint").textContent = onChoose ? t`Choose a token, and the answer continues from there as a new version. ✂ names the setting that rules a token out.` : "";
  partOf(box, "hint").hidden = isOwn;
  if (!box.matches(":popover-open")) box.showPopover();
  place(anchor);
}

/** @param {Shown} shown */
function factsOf({ token, vocabulary, isOwn }) {
  const parts = [t`Rank ${token.rank} of ${vocabulary}`, t`surprise ${decimal(surpriseOf(token), 1)} bits`];
  if (!isOwn) parts.push(t`${percent(token.drawn)} with its settings`);
  return parts.join(" · ");
}

/** @type {(choice: Choice, token: ScoredToken, onChoose?: (choice: Choice) => void) => HTMLElement} */
function rowOf(choice, token, onChoose) {
  const row = copyOf(page.choiceRow);
  const button = /** @type {HTMLButtonElement} */ (row.querySelector("button"));
  const isHere = choice.id === token.id;
  const cut = choice.cut ? cutBy(choice.cut) : "";
  partOf(row, "token").textContent = visible(choice);
  partOf(row, "fill").style.setProperty("inline-size", `${probabilityOf(choice) * 100}%`);
  partOf(row, "share").textContent = percent(probabilityOf(choice));
  partOf(row, "cut").textContent = isHere ? t`here` : onChoose ? cut : "";
  button.toggleAttribute("data-cut", !!cut && !!onChoose);
  button.toggleAttribute("data-here", isHere);
  button.disabled = isHere || !onChoose;
  if (onChoose && !isHere) {
    partOf(row, "lead").textContent = t`Continue with`;
    button.onclick = () => onChoose(choice);
  }
  return row;
}

/** Places the box below its token, or above it; on a phone, at the foot of the page. @param {HTMLElement} anchor */
function place(anchor) {
  box.toggleAttribute("data-sheet", narrow.matches);
  for (const side of ["left", "top"]) box.style.removeProperty(side);
  const { left, top, bottom } = anchor.getClientRects()[0] ?? anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = box;
  if (narrow.matches) return page.scroller.scrollBy(0, Math.max(0, bottom + 2 * GAP - (innerHeight - height)));
  const below = bottom + GAP + height < innerHeight || top < height + GAP;
  box.style.setProperty("left", `${Math.max(GAP, Math.min(left - 12, innerWidth - width - GAP))}px`);
  box.style.setProperty("top", `${Math.max(GAP, below ? Math.min(bottom + GAP, innerHeight - height - GAP) : top - GAP - height)}px`);
}

/** Hides the choices in a moment, unless somebody reads them. */
export function hideSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (!shown || shown.isPinned || box.matches(":hover, :focus-within") || shown.anchor.matches(":hover, :focus")) return;
    hideChoices();
  }, HIDE_MILLISECONDS);
}

export function hideChoices() {
  clearTimeout(timer);
  shown?.anchor.classList.remove("looked-at");
  shown = undefined;
  if (box.matches(":popover-open")) box.hidePopover();
}

/** Hides the choices where somebody closes them: a pointer that is left on their token does not bring them back. */
export function closeChoices() {
  const anchor = shown?.anchor;
  if (anchor && (box.matches(":hover") || anchor.matches(":hover"))) {
    closed = anchor;
    anchor.addEventListener("pointerleave", () => { closed = undefined; }, { once: true });
  }
  hideChoices();
}

const buttons = () => /** @type {HTMLButtonElement[]} */ ([...box.querySelectorAll(".choice-row:enabled")]);

/** Puts the focus on the first choice. */
export function stepInto() {
  if (!shown) return;
  shown.isPinned = true;
  (buttons()[0] ?? partOf(box, "close")).focus();
}

/** Leaves the choices, back to their token. */
function leave() {
  const anchor = shown?.anchor;
  if (box.contains(document.activeElement)) anchor?.focus({ preventScroll: true });
  closeChoices();
}

partOf(box, "close").onclick = leave;
box.addEventListener("pointerleave", hideSoon);
box.addEventListener("keydown", (event) => {
  const all = buttons();
  const at = all.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  if (event.key === "Escape") leave();
  else if (event.key === "ArrowDown") all[Math.min(at + 1, all.length - 1)]?.focus();
  else if (event.key === "ArrowUp" && at > 0) all[at - 1].focus();
  else if (event.key === "ArrowUp") shown?.anchor.focus({ preventScroll: true });
  else return;
  event.preventDefault();
  event.stopPropagation();
});
addEventListener("pointerdown", ({ target }) => {
  if (shown && !box.contains(/** @type {Node} */ (target)) && !shown.anchor.contains(/** @type {Node} */ (target))) hideChoices();
});
page.scroller.addEventListener("scroll", () => {
  if (!shown || narrow.matches) return;
  const { top, bottom } = shown.anchor.getBoundingClientRect();
  if (bottom < 0 || top > innerHeight) hideChoices();
  else place(shown.anchor);
}, { passive: true });
