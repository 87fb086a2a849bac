/** PURE. Chat that waits for an acknowledgement (§3.4), and reasoning folded under its start (§3.5). */

import type { Envelope } from "../envelope";
import { textIn } from "./fields";

export interface Reasoning {
  start: Envelope;
  at: number;
  thoughts: Envelope[];
  /** More were thought than are kept. */
  thoughtsInAll: number;
  /** When its last step came. */
  heardAt: number;
  conclusion: Envelope | null;
  cancel: Envelope | null;
  endedAt: number | null;
}

const THOUGHTS_MAX = 500;
const SHORTLY_MS = 60_000;
const REASONINGS_MAX = 2_000;
const CHATS_MAX = 100_000;
const UNSETTLED_MAX = 500;

export class Reasonings {
  #all = new Map<string, Reasoning>();

  get(id: string): Reasoning | undefined {
    return this.#all.get(id);
  }

  get active(): Reasoning[] {
    return [...this.#all.values()].filter((reasoning) => reasoning.endedAt === null);
  }

  forget(id: string): void {
    this.#all.delete(id);
  }

  /** The one that a context lies in, by its first step: `start-id/step`. */
  within(context: string | null | undefined): Reasoning | undefined {
    return context == null ? undefined : (this.#all.get(context) ?? this.#all.get(context.split("/", 1)[0] ?? ""));
  }

  /** The last that somebody had begun by a moment, if anything was thought in it shortly before: what is older is about something else. */
  before(who: string, at: number): Reasoning | undefined {
    let found: Reasoning | undefined;
    for (const one of this.#all.values()) {
      if (one.start.from === who && one.at <= at && one.heardAt >= at - SHORTLY_MS) found = one;
    }
    return found;
  }

  /** Take the next envelope; return the reasoning that it is part of. */
  apply(envelope: Envelope, at: number): Reasoning | null {
    if (envelope.kind === "reasoning/start") return this.#begin(envelope, at);
    const reasoning = this.within(envelope.context);
    if (reasoning === undefined || !envelope.kind.startsWith("reasoning/")) return null;
    if (envelope.kind === "reasoning/cancel") {
      reasoning.cancel ??= envelope;
    } else if (envelope.from !== reasoning.start.from) {
      return null; // nobody thinks for another
    } else if (envelope.kind === "reasoning/conclusion") {
      reasoning.conclusion ??= envelope;
      reasoning.heardAt = at;
    } else {
      reasoning.thoughts.push(envelope);
      reasoning.heardAt = at;
      reasoning.thoughtsInAll += 1;
      if (reasoning.thoughts.length > THOUGHTS_MAX) reasoning.thoughts.shift();
      return reasoning;
    }
    reasoning.endedAt ??= at;
    return reasoning;
  }

  /** Who left thinks no more here. */
  left(who: string, at: number): void {
    for (const reasoning of this.#all.values()) {
      if (reasoning.start.from === who && reasoning.endedAt === null) reasoning.endedAt = at;
    }
  }

  #begin(envelope: Envelope, at: number): Reasoning {
    const reasoning: Reasoning = {
      start: envelope, at, thoughts: [], thoughtsInAll: 0, heardAt: at, conclusion: null, cancel: null, endedAt: null,
    };
    this.#all.set(envelope.id, reasoning);
    if (this.#all.size > REASONINGS_MAX) this.#all.delete(this.#all.keys().next().value ?? "");
    return reasoning;
  }
}

/** A chat and what became of it. */
export interface Chat {
  envelope: Envelope;
  at: number;
  acknowledged: Map<string, string>;
  cancelled: Envelope | null;
}

export class Chats {
  me = "";
  #all = new Map<string, Chat>();
  #unsettled = new Map<string, Chat>();

  get(id: string): Chat | undefined {
    return this.#all.get(id);
  }

  forget(id: string): void {
    this.#all.delete(id);
    this.#unsettled.delete(id);
  }

  /** What others said to me or to all, neither acknowledged by me nor cancelled; oldest first. */
  get waiting(): Chat[] {
    return [...this.#unsettled.values()].filter((chat) => this.#waits(chat));
  }

  /** What I said that nobody acknowledged and I did not cancel. */
  get unheard(): Chat[] {
    return [...this.#unsettled.values()].filter(
      (chat) => chat.envelope.from === this.me && chat.cancelled === null && !isHeard(chat),
    );
  }

  apply(envelope: Envelope, at: number): Chat | null {
    if (envelope.kind === "chat") return this.#say(envelope, at);
    if (envelope.kind !== "chat/acknowledge" && envelope.kind !== "chat/cancel") return null;
    const chat = this.#all.get(envelope.correlation_id?.[0] ?? "");
    if (chat === undefined) return null;
    if (envelope.kind === "chat/cancel" || envelope.from === this.me) this.#unsettled.delete(chat.envelope.id);
    if (envelope.kind === "chat/cancel") chat.cancelled ??= envelope;
    else if (chat.acknowledged.size < 256) chat.acknowledged.set(envelope.from, textIn(envelope.payload?.status) ?? "received");
    return chat;
  }

  #say(envelope: Envelope, at: number): Chat {
    const chat: Chat = { envelope, at, acknowledged: new Map(), cancelled: null };
    this.#all.set(envelope.id, chat);
    this.#unsettled.set(envelope.id, chat);
    if (this.#all.size > CHATS_MAX) this.#all.delete(this.#all.keys().next().value ?? "");
    if (this.#unsettled.size > UNSETTLED_MAX) this.#unsettled.delete(this.#unsettled.keys().next().value ?? "");
    return chat;
  }

  #waits({ envelope, acknowledged, cancelled }: Chat): boolean {
    if (envelope.from === this.me || cancelled !== null || acknowledged.has(this.me)) return false;
    return (envelope.to ?? []).length === 0 || envelope.to?.includes(this.me) === true;
  }
}

/** Said to nobody by name. */
export function isToAll({ envelope }: Chat): boolean {
  return (envelope.to ?? []).length === 0;
}

function isHeard({ envelope, acknowledged }: Chat): boolean {
  const to = envelope.to ?? [];
  return to.length === 0 ? acknowledged.size > 0 : to.every((who) => acknowledged.has(who));
}
