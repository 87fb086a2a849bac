/** Signing in: the code of a link, a pasted token, and where the token is kept. */

import { type Session, endSession, openSession } from "./http";
import { store, stored, unstore } from "./stored";

/** A space and who one is in it. `participant` is what the gateway said of the token. */
export interface SignedIn {
  space: string;
  token: string;
  participant: string;
}

const LINK = /^#link=([\w-]{1,256})$/;
const STORED_AS = "mew.signed-in";

/** The code in the address, which is gone from it, and from what "back" leads to, before this returns. */
export function takeCode(): string | null {
  const code = LINK.exec(location.hash)?.[1] ?? null;
  if (location.hash.startsWith("#link=")) window.history.replaceState(null, "", location.pathname + location.search);
  return code;
}

/** Call back with each code that comes into the address while the page is open; returns what ends that. */
export function onCode(found: (code: string) => void): () => void {
  const look = (): void => {
    const code = takeCode();
    if (code !== null) found(code);
  };
  window.addEventListener("hashchange", look);
  return () => window.removeEventListener("hashchange", look);
}

/** Exchange a code for a token. Rejects with `Problem`: used, too old, or never one. */
export async function signInByCode(code: string): Promise<SignedIn> {
  const { space, token, participant }: Session = await openSession(code);
  return { space, token, participant };
}

/** Whether a text may be a token at all: such a thing is not sent anywhere. */
export function mayBeToken(text: string): boolean {
  return /^[!-+\--~]{1,4096}$/.test(text);
}

/** Keep it in this browser, for later visits, because somebody asked for that. */
export function remember(who: SignedIn): boolean {
  return store(STORED_AS, JSON.stringify(who));
}

/** What was kept before; null if nothing was. */
export function remembered(): SignedIn | null {
  try {
    const kept = JSON.parse(stored(STORED_AS) ?? "null") as Partial<SignedIn> | null;
    const { space, token, participant } = kept ?? {};
    if (typeof space !== "string" || typeof token !== "string" || typeof participant !== "string") return null;
    return { space, token, participant };
  } catch {
    return null;
  }
}

export function forget(): void {
  unstore(STORED_AS);
}

/** Forget the token here, and make it worthless where it was this browser's own. */
export async function signOut(who: SignedIn): Promise<void> {
  forget();
  await discard(who);
}

/** Make a token that is not wanted worthless, if it is a session's. */
export async function discard(who: SignedIn): Promise<void> {
  await endSession(who.token).catch(() => undefined); // a pasted token is not ours to end
}
