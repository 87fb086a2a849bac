/** A modal dialog: Escape closes it, and the focus returns to where it was. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { usePageState } from "./page_state";
import { focusBack } from "./focus";

interface Props {
  title: string;
  wide?: boolean;
  /** Asked before it is closed by Escape or ✕: false where something is to be settled first. */
  mayLeave?: () => boolean;
  children: ComponentChildren;
}

export function DialogBox({ title, wide, mayLeave = () => true, children }: Props) {
  const page = usePageState();
  const box = useRef<HTMLDialogElement>(null);
  const isHere = useRef(true);
  useLayoutEffect(() => {
    const element = box.current;
    const before = document.activeElement;
    if (element !== null && !element.open) element.showModal();
    element?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      isHere.current = false;
      element?.close();
      focusBack(before, page.pane.peek());
    };
  }, []);
  // Browsers tell of a closed dialog later, when another may be open in its place.
  const close = (): void => {
    if (isHere.current) page.dialog.value = null;
  };
  const leave = (event: Event): void => {
    event.preventDefault();
    if (mayLeave()) close();
  };
  // Browsers ask only once: a second Escape closes a dialog, whatever was said to the first.
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && !event.defaultPrevented && !event.isComposing) leave(event);
  };
  return (
    <dialog
      ref={box}
      class={wide === true ? "wide" : ""}
      aria-labelledby="dialog-title"
      onClose={close}
      onCancel={leave}
      onKeyDown={pressed}
    >
      <header>
        <h2 id="dialog-title">{title}</h2>
        <button type="button" class="quiet close" aria-label="close" onClick={leave}>
          ✕
        </button>
      </header>
      <div class="dialog-inside">{children}</div>
    </dialog>
  );
}
