// Menus below their buttons: shown, moved in by keys, closed.

const GAP = 4; // pixels

/**
 * Opens a menu below its button; gives a function that makes what an item does, which closes it first.
 * @type {(menu: HTMLElement, opener: HTMLButtonElement) => (item: HTMLElement, then: () => void) => void}
 */
export function openMenu(menu, opener) {
  menu.onkeydown = move;
  menu.ontoggle = (event) => {
    const isOpen = event.newState === "open";
    opener.ariaExpanded = String(isOpen);
    if (isOpen) return;
    if (menu.contains(document.activeElement) || document.activeElement === document.body) opener.focus();
    menu.remove();
  };
  document.body.append(menu);
  menu.showPopover();
  const { right, top, bottom } = opener.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  menu.style.setProperty("left", `${Math.max(GAP, Math.min(right - width, innerWidth - width - GAP))}px`);
  menu.style.setProperty("top", `${bottom + GAP + height < innerHeight ? bottom + GAP : Math.max(GAP, top - GAP - height)}px`);
  items()[0]?.focus();
  return (item, then) => {
    item.onclick = () => {
      menu.hidePopover();
      then();
    };
  };

  function items() {
    return /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("[role=menuitem]:not([hidden])")]);
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const all = items();
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab") menu.hidePopover();
    if (to === undefined) return;
    event.preventDefault();
    all.at(to % all.length)?.focus();
  }
}
