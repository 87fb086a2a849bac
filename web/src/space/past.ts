/** PURE. A part of the history: some thousand envelopes in a row, which moves as somebody reads on in either direction. */

import type { Envelope } from "../envelope";
import { Space, momentOf } from "./space";

/** What the gateway gave: oldest first, and where to go on; `next` is null at the end. */
export interface Stretch {
  envelopes: Envelope[];
  next: string | null;
}

const ENVELOPES_MAX = 3_000;

export class Past {
  readonly space: Space;
  /** Where older and newer ones are to be asked for; null: there are none. */
  readonly older: string | null;
  readonly newer: string | null;
  readonly envelopes: readonly Envelope[];
  #me: string;
  #most: number;

  constructor(me: string, envelopes: readonly Envelope[], older: string | null, newer: string | null, most = ENVELOPES_MAX) {
    this.#me = me;
    this.#most = most;
    [this.envelopes, this.older, this.newer] = [envelopes, older, newer];
    this.space = new Space();
    this.space.participants.me = me;
    for (const envelope of envelopes) this.space.apply({ is: "envelope", envelope, at: momentOf(envelope) });
  }

  /** With older ones in front; where that is too much, the newest go. */
  earlier({ envelopes, next }: Stretch): Past {
    const all = [...this.#unknown(envelopes), ...this.envelopes];
    const kept = all.slice(0, Math.max(this.#most, envelopes.length));
    const newer = kept.length < all.length ? (kept.at(-1)?.id ?? null) : this.newer;
    return new Past(this.#me, kept, next, newer, this.#most);
  }

  /** With newer ones behind; where that is too much, the oldest go. */
  later({ envelopes, next }: Stretch): Past {
    const all = [...this.envelopes, ...this.#unknown(envelopes)];
    const kept = all.slice(-Math.max(this.#most, envelopes.length, 1));
    const older = kept.length < all.length ? (kept[0]?.id ?? null) : this.older;
    return new Past(this.#me, kept, older, next, this.#most);
  }

  /** Ids come twice where an old client counts from the start again; the same envelope does not. */
  #unknown(envelopes: Envelope[]): Envelope[] {
    const known = new Set(this.envelopes.map(nameOf));
    return envelopes.filter((one) => !known.has(nameOf(one)));
  }
}

function nameOf({ id, from, ts }: Envelope): string {
  return JSON.stringify([id, from, ts]);
}
