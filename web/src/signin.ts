/** Signing in: the code of a link, a pasted token, and where the token is kept. */

import { type Session, endSession, openSession } from "./http";
import { type Where, store, stored, unstore } from "./stored";

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

/** Keep it: in the tab, what a link was exchanged for, so that a reload does not sign out; in the browser, what somebody asked to keep. */
export function remember(who: SignedIn, where: Where): boolean {
  return store(STORED_AS, JSON.stringify(who), where);
}

/** What was kept before, in this tab first; null if nothing was. */
export function remembered(): SignedIn | null {
  return keptIn("tab") ?? keptIn("browser");
}

export function isRemembered(who: SignedIn, where: Where): boolean {
  return keptIn(where)?.token === who.token;
}

/** Another's that is kept there stays. */
export function forget(who: SignedIn, where: Where): void {
  if (isRemembered(who, where)) unstore(STORED_AS, where);
}

function keptIn(where: Where): SignedIn | null {
  try {
    const kept = JSON.parse(stored(STORED_AS, where) ?? "null") as Partial<SignedIn> | null;
    const { space, token, participant } = kept ?? {};
    if (typeof space !== "string" || typeof token !== "string" || typeof participant !== "string") return null;
    return { space, token, participant };
  } catch {
    return null;
  }
}

/** Forget the token here. */
export function forgetAll(who: SignedIn): void {
  forget(who, "tab");
  forget(who, "browser");
}

/** Forget the token here, and make it worthless where it was this browser's own. */
export async function signOut(who: SignedIn): Promise<void> {
  forgetAll(who);
  await discard(who);
}

/** Make a token that is not wanted worthless, if it is a session's. */
export async function discard(who: SignedIn): Promise<void> {
  await endSession(who.token).catch(() => undefined); // a pasted token is not ours to end
}
