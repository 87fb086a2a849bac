/** Where the keyboard goes when somebody asks for a part of the page. */

import type { Pane } from "./page_state";

/** The first that is there. */
const WAYS_IN: Record<Pane, string[]> = {
  waiting: [".card.selected .card-title", ".card-title", ".cards"],
  stream: [".rows"],
  timeline: [".bar[tabindex='0']", ".timeline select"],
  autopilot: [".rule summary", ".autopilot-inside"],
  people: [".people summary"],
};

export function focusPane(pane: Pane): void {
  requestAnimationFrame(() => WAYS_IN[pane].some(tryFocus)); // once drawn: another card may be the selected one by then
}

/** Where it was before; or in the pane, where that is gone: a button of what is decided now, a row that was scrolled away. */
export function focusBack(before: Element | null, pane: Pane): void {
  if (before === null || before === document.body) return;
  if (before instanceof HTMLElement || before instanceof SVGElement) before.focus();
  requestAnimationFrame(() => {
    if (!before.isConnected && document.activeElement === document.body) focusPane(pane);
  });
}

/** At once where it is there, so that what is typed right then goes into it; else once it is drawn. */
export function focusOn(selector: string): void {
  if (!tryFocus(selector)) onceDrawn(() => tryFocus(selector));
}

/** Where the keyboard is on a card that is not the one looked at any more, it goes along. */
export function followSelection(): void {
  const at = document.activeElement;
  if (at?.closest(".card-head") != null && at.closest(".card.selected") === null) tryFocus(".card.selected .card-title");
}

/** As soon as what changed is in the page, before any other key; or with the next frame, where that was too early. */
export function onceDrawn(act: () => boolean): void {
  queueMicrotask(() => {
    if (!act()) requestAnimationFrame(act);
  });
}

function tryFocus(selector: string): boolean {
  const found = document.querySelector<HTMLElement | SVGElement>(selector);
  found?.focus();
  return found !== null && document.activeElement === found;
}
