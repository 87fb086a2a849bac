/** Which part of a proposal's params is folded away: what was not wholly shown is not approved. */

import { signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext, useLayoutEffect } from "preact/hooks";

import type { JsonObject } from "../../json";
import { roughSize } from "../../space/fields";

/** Params beyond this size are folded early: to draw all of them takes longer than anybody waits. */
const ROOMY_SIZE_MAX = 200_000;

/** Of the params of one proposal. What somebody unfolded stays so while the proposal waits. */
export class Disclosure {
  /** How often somebody asked for everything: a branch that was closed by hand since then opens again. */
  readonly asked = signal(0);
  /** Whether the params are small enough for long texts to be shown at once. */
  readonly isRoomy: boolean;
  #folded = signal(0);
  #isOnPage = signal(false);
  #wasWhole = false;

  constructor(params: JsonObject) {
    this.isRoomy = roughSize(params, ROOMY_SIZE_MAX) <= ROOMY_SIZE_MAX;
  }

  /** Whether the params are on the page, more or less unfolded. */
  get isOnPage(): boolean {
    return this.#isOnPage.value;
  }

  /** Whether nothing is folded; of params that are not on the page: whether that was so while they were. */
  get isWhole(): boolean {
    return this.#isOnPage.value ? this.#folded.value === 0 : this.#wasWhole;
  }

  showEverything(): void {
    this.asked.value += 1;
  }

  /** Count one more folded part; returns what ends that. */
  fold(): () => void {
    this.#folded.value += 1;
    return () => {
      this.#folded.value -= 1;
    };
  }

  /** The params are on the page; returns what ends that. */
  appear(): () => void {
    this.#isOnPage.value = true;
    return () => {
      this.#isOnPage.value = false;
    };
  }

  /** All of the params were on the page. */
  saw(): void {
    this.#wasWhole = true;
  }
}

const DisclosureContext = createContext<Disclosure | null>(null);
export const DisclosureProvider = DisclosureContext.Provider;

/** What surrounds a view; null where nothing depends on what it folds. */
export function useDisclosure(): Disclosure | null {
  return useContext(DisclosureContext);
}

/** Say of a view whether it folds a part away. */
export function useFolded(isFolded: boolean): void {
  const disclosure = useDisclosure();
  useLayoutEffect(() => (isFolded ? disclosure?.fold() : undefined), [isFolded, disclosure]);
}

/** Call this where the params are drawn: keeps whether all of them are, or were, on the page. */
export function useAppearance(disclosure: Disclosure): void {
  const isSeen = disclosure.isOnPage && disclosure.isWhole;
  useLayoutEffect(() => disclosure.appear(), [disclosure]); // after what is inside has said what it folds
  useLayoutEffect(() => {
    if (isSeen) disclosure.saw();
  }, [disclosure, isSeen]);
}
