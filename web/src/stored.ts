/** The browser's stores, which may be switched off or full: then nothing was kept, and nothing is. */

/** `browser`: until it is taken out. `tab`: through reloads, until the tab is closed, and seen by no other. */
export type Where = "browser" | "tab";

export function stored(name: string, where: Where = "browser"): string | null {
  try {
    return storeOf(where).getItem(name);
  } catch {
    return null;
  }
}

/** Returns whether it was kept. */
export function store(name: string, value: string, where: Where = "browser"): boolean {
  try {
    storeOf(where).setItem(name, value);
    return true;
  } catch {
    return false;
  }
}

export function unstore(name: string, where: Where = "browser"): void {
  try {
    storeOf(where).removeItem(name);
  } catch {
    // then it was not there
  }
}

function storeOf(where: Where): Storage {
  return where === "tab" ? sessionStorage : localStorage;
}
