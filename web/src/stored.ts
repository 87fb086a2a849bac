/** The browser's store, which may be switched off or full: then nothing was kept, and nothing is. */

export function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Returns whether it was kept. */
export function store(name: string, value: string): boolean {
  try {
    localStorage.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}

export function unstore(name: string): void {
  try {
    localStorage.removeItem(name);
  } catch {
    // then it was not there
  }
}
