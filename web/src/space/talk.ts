/** PURE. Chat that waits for an acknowledgement (§3.4), and reasoning folded under its start (§3.5). */

import type { Envelope } from "../envelope";
import { textIn } from "./fields";

export interface Reasoning {
  start: Envelope;
  at: number;
  thoughts: Envelope[];
  /** More were thought than are kept. */
  thoughtsInAll: number;
  conclusion: Envelope | null;
  cancel: Envelope | null;
  endedAt: number | null;
}

/** The steps of a reasoning that are about one proposal, and who reasoned. */
export interface ReasoningSteps {
  by: string;
  steps: Envelope[];
}

/** What led to a proposal: a reasoning, as far as it had come by then. */
interface Lead {
  reasoning: Reasoning;
  thoughts: number;
  isConcluded: boolean;
}

const THOUGHTS_MAX = 500;
const REASONINGS_MAX = 2_000;
const LEADS_MAX = 4_000;
const NAMED_MAX = 4;
/** After one of these by the same participant, a reasoning that was concluded before is not what led to a proposal. */
const ACTS = new Set(["chat", "mcp/request", "mcp/proposal", "reasoning/start"]);
const CHATS_MAX = 100_000;
const UNSETTLED_MAX = 500;

export class Reasonings {
  #all = new Map<string, Reasoning>();
  /** Participant -> the reasoning that it concluded, until it does something else. */
  #concluded = new Map<string, Reasoning>();
  /** Proposal -> the reasoning that it was made in, or that ended in it. */
  #leads = new Map<string, Lead>();
  /** Envelope -> the steps that name it in `correlation_id` or `context`. */
  #naming = new Map<string, Envelope[]>();

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

  /**
   * The reasoning that led to a proposal, up to the moment it was made, and what its proposer has said about it in
   * later steps that name it. Nothing that is about another proposal.
   */
  about(proposal: { id: string; proposer: string }): ReasoningSteps | undefined {
    const lead = this.#leads.get(proposal.id);
    const led = lead === undefined ? [] : stepsOf(lead);
    const naming = (this.#naming.get(proposal.id) ?? []).filter(({ from }) => from === proposal.proposer);
    const named = naming.flatMap((step) => (step.kind === "reasoning/start" ? this.#whole(step) : [step]));
    const steps = [...new Set([...led, ...named])];
    return steps.length === 0 ? undefined : { by: led[0]?.from ?? proposal.proposer, steps };
  }

  /** Take the next envelope; return the reasoning that it is part of. */
  apply(envelope: Envelope, at: number): Reasoning | null {
    if (envelope.kind === "mcp/proposal") this.#lead(envelope);
    if (ACTS.has(envelope.kind)) this.#concluded.delete(envelope.from);
    if (!envelope.kind.startsWith("reasoning/")) return null;
    this.#name(envelope);
    if (envelope.kind === "reasoning/start") return this.#begin(envelope, at);
    const reasoning = this.within(envelope.context);
    if (reasoning === undefined) return null;
    if (envelope.kind === "reasoning/cancel") {
      reasoning.cancel ??= envelope;
    } else if (envelope.from !== reasoning.start.from) {
      return null; // nobody thinks for another
    } else if (envelope.kind === "reasoning/conclusion") {
      reasoning.conclusion ??= envelope;
      this.#concluded.set(envelope.from, reasoning);
    } else {
      reasoning.thoughts.push(envelope);
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
      start: envelope, at, thoughts: [], thoughtsInAll: 0, conclusion: null, cancel: null, endedAt: null,
    };
    this.#all.set(envelope.id, reasoning);
    bound(this.#all, REASONINGS_MAX);
    return reasoning;
  }

  /** Somebody proposes: within a reasoning that it names, or right after one of its own was concluded. */
  #lead({ id, from, context }: Envelope): void {
    const reasoning = context === undefined ? this.#concluded.get(from) : this.within(context);
    if (reasoning === undefined || this.#leads.has(id)) return;
    this.#leads.set(id, { reasoning, thoughts: reasoning.thoughtsInAll, isConcluded: reasoning.conclusion !== null });
    bound(this.#leads, LEADS_MAX);
  }

  #name(step: Envelope): void {
    const named = (step.correlation_id ?? []).slice(0, NAMED_MAX);
    if (step.context !== undefined && this.within(step.context) === undefined) named.push(step.context);
    for (const id of new Set(named)) {
      const steps = this.#naming.get(id) ?? [];
      if (steps.length < THOUGHTS_MAX) steps.push(step);
      this.#naming.set(id, steps);
    }
    bound(this.#naming, LEADS_MAX);
  }

  #whole(start: Envelope): Envelope[] {
    const reasoning = this.#all.get(start.id);
    return reasoning === undefined ? [start] : stepsOf({ reasoning, thoughts: reasoning.thoughtsInAll, isConcluded: true });
  }
}

/** The first of them may no longer be kept. */
function stepsOf({ reasoning, thoughts, isConcluded }: Lead): Envelope[] {
  const kept = reasoning.thoughts.slice(0, Math.max(0, thoughts - (reasoning.thoughtsInAll - reasoning.thoughts.length)));
  const conclusion = isConcluded && reasoning.conclusion !== null ? [reasoning.conclusion] : [];
  return [reasoning.start, ...kept, ...conclusion];
}

function bound(map: Map<string, unknown>, most: number): void {
  for (const oldest of map.keys()) {
    if (map.size <= most) return;
    map.delete(oldest);
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
