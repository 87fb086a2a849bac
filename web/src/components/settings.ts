/** What a person chose for this browser: the theme, and whether to be told. */

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const THEME = "mew.theme";
const NOTIFY = "mew.notify";

export class Settings {
  readonly theme = signal<Theme>(read(THEME) === "light" ? "light" : read(THEME) === "dark" ? "dark" : "system");
  readonly notifies = signal(read(NOTIFY) === "yes" && "Notification" in window && Notification.permission === "granted");

  constructor() {
    effect(() => {
      const theme = this.theme.value;
      if (theme === "system") delete document.documentElement.dataset["theme"];
      else document.documentElement.dataset["theme"] = theme;
      write(THEME, theme);
    });
  }

  nextTheme(): void {
    const after: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
    this.theme.value = after[this.theme.value];
  }

  /** Returns why not, where the browser would not have it. */
  async toggleNotifications(): Promise<string | null> {
    if (this.notifies.value) {
      this.notifies.value = false;
    } else {
      if (!("Notification" in window)) return "This browser shows no notifications.";
      if ((await Notification.requestPermission()) !== "granted") return "The browser was told not to show notifications of this page.";
      this.notifies.value = true;
    }
    write(NOTIFY, this.notifies.value ? "yes" : "no");
    return null;
  }

  /** Only while nobody looks at the page. */
  notify(text: string, space: string): void {
    if (!this.notifies.value || document.visibilityState === "visible") return;
    try {
      const shown = new Notification(text, { tag: `mew-${space}`, body: `It waits for you in ${space}.` });
      shown.onclick = () => window.focus();
    } catch {
      // some browsers have them only for installed pages
    }
  }
}

function read(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function write(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // switched off, or full: then it holds for this visit
  }
}
