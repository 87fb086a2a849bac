/** Browser notifications about waiting items, in the page's own words, which lead to the item. */

import { signal } from "@preact/signals";

import { stored, store } from "../../stored";
import { named, visible } from "../../text";

/** Something that waits, as it is told. */
export interface News {
  id: string;
  who: string;
  /** What this one does: `proposes write_file`. */
  does: string;
}

const WANTED = "mew.notify";
/** However much comes, nobody is told more often. */
const EVERY_MS = 3_000;
const HELD_MAX = 1_000;

export class Notifications {
  readonly wanted = signal(stored(WANTED) === "yes" && isAllowed());
  #space: string;
  #open: (id: string) => void;
  #failed: (why: string) => void;
  #held: News[] = [];
  #timer: number | undefined;
  #shown: Notification | null = null;

  /** `open` leads to what a notification is about; `failed` is told why there will be none, where that shows only now. */
  constructor(space: string, open: (id: string) => void, failed: (why: string) => void) {
    this.#space = space;
    this.#open = open;
    this.#failed = failed;
    window.addEventListener("focus", this.#looked);
  }

  /** On or off; returns why not, where the browser would not have it. */
  async toggle(): Promise<string | null> {
    if (this.wanted.value) {
      this.wanted.value = false;
    } else {
      if (!window.isSecureContext) return "Browsers show notifications only for pages served over HTTPS or from this machine.";
      if (!("Notification" in window)) return "This browser does not support notifications.";
      if ((await Notification.requestPermission()) !== "granted") return "Notifications for this page are blocked in the browser.";
      this.wanted.value = true;
    }
    store(WANTED, this.wanted.value ? "yes" : "no");
    return null;
  }

  /** Tell of it, if that is wanted and nobody looks at the page. */
  tell(news: News): void {
    if (!this.wanted.value || !isAllowed() || isLookedAt()) return;
    if (this.#held.length < HELD_MAX) this.#held.push(news);
    if (this.#timer === undefined) this.#tellAll();
  }

  stop(): void {
    window.removeEventListener("focus", this.#looked);
    this.#looked();
  }

  #tellAll(): void {
    this.#timer = undefined;
    const [first] = this.#held;
    if (first === undefined) return;
    this.#show(first, this.#held.length - 1);
    this.#held = [];
    this.#timer = window.setTimeout(() => this.#tellAll(), EVERY_MS);
  }

  #show({ id, who, does }: News, more: number): void {
    const others = more === 0 ? "" : more === 1 ? " One more is waiting." : ` ${more} more are waiting.`;
    try {
      const shown = new Notification(`${named(who, 40)} ${visible(does, 80)}`, {
        tag: `mew ${this.#space}`,
        body: `Waiting for you in ${visible(this.#space, 60)}.${others}`,
      });
      shown.onclick = () => {
        window.focus();
        shown.close();
        this.#open(id);
      };
      this.#shown = shown;
    } catch {
      // Browsers of phones have the class, and throw where it is used.
      this.wanted.value = false;
      store(WANTED, "no");
      this.#failed("This browser shows notifications only for installed pages, so you will not be notified.");
    }
  }

  #looked = (): void => {
    this.#held = [];
    window.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#shown?.close();
    this.#shown = null;
  };
}

function isAllowed(): boolean {
  return "Notification" in window && Notification.permission === "granted";
}

function isLookedAt(): boolean {
  return document.visibilityState === "visible" && document.hasFocus();
}
