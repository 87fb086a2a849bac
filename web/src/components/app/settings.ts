/** How a person wants the page in this browser: light, dark, or as the system has it. */

import { effect, signal } from "@preact/signals";

import { store, stored } from "../../stored";

export type Theme = "system" | "light" | "dark";

const THEME = "mew.theme";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

export class Settings {
  readonly theme = signal<Theme>(themeStored());

  constructor() {
    effect(() => {
      const theme = this.theme.value;
      if (theme === "system") delete document.documentElement.dataset["theme"];
      else document.documentElement.dataset["theme"] = theme;
      store(THEME, theme);
    });
  }

  nextTheme(): void {
    this.theme.value = NEXT[this.theme.value];
  }
}

function themeStored(): Theme {
  const theme = stored(THEME);
  return theme === "light" || theme === "dark" ? theme : "system";
}
