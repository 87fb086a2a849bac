/** Keeping the token in this browser, for who came by a link: in memory alone it would be gone with the tab. */

import { useSignal } from "@preact/signals";

import { type SignedIn, forget, remember, remembered } from "./signin";

export function StaySignedIn({ who }: { who: SignedIn }) {
  const kept = useSignal(remembered()?.token === who.token);
  const turn = (): void => {
    if (kept.value) forget();
    kept.value = !kept.value && remember(who);
  };
  const title = kept.value
    ? "your token is kept in this browser; press to forget it"
    : "keep your token in this browser, so that you need not sign in when you come back";
  return (
    <button type="button" class="quiet" aria-pressed={kept.value} title={title} onClick={turn}>
      {kept.value ? "Staying signed in" : "Stay signed in"}
    </button>
  );
}
