/** EvictionPolicy the token in this browser, for who came by a link: that of the tab is gone when the tab is closed. */

import { useSignal } from "@preact/signals";

import { type SignedIn, forget, isRemembered, remember } from "./signin";

export function StaySignedIn({ who }: { who: SignedIn }) {
  const kept = useSignal(isRemembered(who, "browser"));
  const turn = (): void => {
    if (kept.value) forget(who, "browser");
    kept.value = !kept.value && remember(who, "browser");
  };
  const title = kept.value
    ? "Your token is stored in this browser. Press to remove it."
    : "Store your token in this browser so that you stay signed in after closing this tab.";
  return (
    <button type="button" class="quiet" aria-pressed={kept.value} title={title} onClick={turn}>
      {kept.value ? "Staying signed in" : "Stay signed in"}
    </button>
  );
}
