/** Puts the page together: the way in, then the space. */

import { signal } from "@preact/signals";
import { render } from "preact";

import { App } from "./components/app/app";
import { Entrance } from "./entrance";
import { type SignedIn, forgetAll, onCode, remembered, signOut, takeCode } from "./signin";

const code = signal(takeCode()); // before anything else can see the address
const signedIn = signal<SignedIn | null>(remembered());
const notice = signal<string | null>(null);
onCode((found) => (code.value = found));

function enter(who: SignedIn): void {
  code.value = null;
  notice.value = null;
  signedIn.value = who;
}

function leave(who: SignedIn, why: string | null): void {
  forgetAll(who);
  notice.value = why;
  signedIn.value = null;
}

function Page() {
  const who = signedIn.value;
  if (who === null || code.value !== null) {
    return <Entrance key={code.value} code={code.value} present={who} notice={notice.value} onSignedIn={enter} />;
  }
  const goodbye = (): void => void signOut(who).finally(() => leave(who, null));
  return <App key={who.token} who={who} onRefused={(problem) => leave(who, problem.message)} onSignOut={goodbye} />;
}

const root = document.getElementById("page");
if (root !== null) render(<Page />, root);
