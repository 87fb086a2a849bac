/** Where the keyboard goes when somebody asks for a part of the page. */

import type { Pane } from "./desk";

/** The first that is there. */
const WAYS_IN: Record<Pane, string[]> = {
  waiting: [".card.selected .card-title", ".card-title", ".cards"],
  stream: [".rows"],
  timeline: [".bar[tabindex='0']", ".timeline select"],
  people: [".people summary"],
};

export function focusPane(pane: Pane): void {
  focusOn(...WAYS_IN[pane]);
}

/** Where it was before; or in the pane, where that is gone: a button of what is decided now, a row that was scrolled away. */
export function focusBack(before: Element | null, pane: Pane): void {
  if (before === null || before === document.body) return;
  if (before instanceof HTMLElement || before instanceof SVGElement) before.focus();
  requestAnimationFrame(() => {
    if (!before.isConnected && document.activeElement === document.body) focusPane(pane);
  });
}

/** On the first of these that is there, once it is drawn. */
export function focusOn(...selectors: string[]): void {
  requestAnimationFrame(() => {
    for (const selector of selectors) {
      const found = document.querySelector<HTMLElement | SVGElement>(selector);
      if (found === null) continue;
      found.focus();
      return;
    }
  });
}
