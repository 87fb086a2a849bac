/** Decisions on their way: each waits three seconds, in which it can be taken back, and is then sent once. */

import { computed, signal } from "@preact/signals";

import type { JsonObject } from "../json";
import { type Proposal, isOpen, toolOf } from "../space/proposals";
import type { AnswerAction, Question } from "../space/questions";
import { visible } from "../text";
import type { Desk } from "./desk";

export type Decision =
  /** `params` where they were changed; `to` where the proposal left open who is to do it. */
  | { is: "approve"; params?: JsonObject; to?: string[] }
  | { is: "reject"; reason: string; words: string }
  /** To a question; `content` where it is a form that was filled in. */
  | { is: "answer"; action: AnswerAction; content: JsonObject | null };

export interface Pending {
  key: number;
  ids: string[];
  decision: Decision;
  sendAt: number;
  is: "waiting" | "sending";
}

const UNDO_MS = 3_000;
/** The next proposal moves up when one is decided: a second keystroke right then was meant for the first. */
const GUARD_MS = 400;

export class Decisions {
  readonly pending = signal<Pending[]>([]);
  /** The proposal that is looked at. */
  readonly selected = signal<string | null>(null);
  /** Those picked to be decided at once. */
  readonly marked = signal<ReadonlySet<string>>(new Set());
  /** Decided or closed while they were shown: they stay in place until somebody moves on. */
  readonly kept = signal<readonly string[]>([]);
  /** For a moment after the list moved by itself. */
  readonly guarded = signal(false);
  readonly underWay = computed(() => new Set(this.pending.value.flatMap((one) => one.ids)));

  #desk: Desk;
  #key = 0;
  #rpc = Math.floor(Math.random() * 1e9);
  #timers = new Map<number, number>();
  #guard: number | undefined;
  #mine = new Set<string>();

  constructor(desk: Desk) {
    this.#desk = desk;
    window.addEventListener("beforeunload", this.#leaving);
  }

  /** What a keystroke is about: all that are marked, else the one selected. Empty right after the list moved. */
  get aimed(): string[] {
    if (this.guarded.value) return [];
    const marked = [...this.marked.value].filter((id) => this.canDecide(id));
    if (marked.length > 0) return marked;
    const selected = this.selected.value;
    return selected !== null && this.canDecide(selected) ? [selected] : [];
  }

  canDecide(id: string): boolean {
    const { space } = this.#desk;
    const [proposal, question] = [space.proposals.get(id), space.questions.get(id)];
    const waits = proposal !== undefined ? space.waitsForMe(proposal) : question !== undefined && space.waitsForAnswer(question);
    return waits && !this.underWay.value.has(id);
  }

  /** The question that a keystroke is about, if it is about one. */
  get question(): Question | undefined {
    const [id] = this.aimed;
    return id === undefined ? undefined : this.#desk.space.questions.get(id);
  }

  decide(ids: string[], decision: Decision): void {
    const open = ids.filter((id) => this.canDecide(id));
    if (open.length === 0) return;
    const pending: Pending = { key: this.#key++, ids: open, decision, sendAt: Date.now() + UNDO_MS, is: "waiting" };
    this.pending.value = [...this.pending.value, pending];
    this.marked.value = new Set([...this.marked.value].filter((id) => !open.includes(id)));
    for (const id of open) this.#mine.add(id);
    this.#timers.set(pending.key, window.setTimeout(() => void this.#send(pending), UNDO_MS));
    if (open.includes(this.selected.value ?? "")) this.#advance();
  }

  /** Take back the last, or this one; returns whether there was one. */
  undo(key?: number): boolean {
    const waiting = this.pending.value.filter((one) => one.is === "waiting");
    const taken = key === undefined ? waiting.at(-1) : waiting.find((one) => one.key === key);
    if (taken === undefined) return false;
    window.clearTimeout(this.#timers.get(taken.key));
    this.#drop(taken.key);
    for (const id of taken.ids) this.#mine.delete(id);
    this.selected.value = taken.ids[0] ?? this.selected.value;
    return true;
  }

  toggleMark(id: string): void {
    const marked = new Set(this.marked.value);
    if (!marked.delete(id) && this.canDecide(id) && this.#desk.space.proposals.get(id) !== undefined) marked.add(id);
    this.marked.value = marked;
  }

  select(id: string | null): void {
    this.selected.value = id;
    this.kept.value = this.kept.value.filter((kept) => kept === id);
  }

  /** Whom an approval goes to without a further word: whom the proposal names, or the only one who offers the tool. */
  targets(proposal: Proposal): string[] {
    const targets = this.#desk.space.targetsOf(proposal);
    return proposal.to.length > 0 || targets.length === 1 ? targets : [];
  }

  /** Whether it was decided here. */
  isMine(id: string): boolean {
    return this.#mine.has(id);
  }

  /** Choose for somebody: what a key does then is not meant for it for a moment. */
  offer(id: string | null): void {
    if (id === this.selected.value) return;
    this.selected.value = id;
    this.hold();
  }

  /** What is looked at is not what it was a moment ago: a key pressed right now was meant for that. */
  hold(): void {
    this.guarded.value = true;
    window.clearTimeout(this.#guard);
    this.#guard = window.setTimeout(() => (this.guarded.value = false), GUARD_MS);
  }

  stop(): void {
    window.removeEventListener("beforeunload", this.#leaving);
    for (const timer of this.#timers.values()) window.clearTimeout(timer);
  }

  async #send(pending: Pending): Promise<void> {
    this.#replace({ ...pending, is: "sending" });
    await Promise.all(pending.ids.map((id) => this.#sendOne(id, pending.decision)));
    this.#drop(pending.key);
  }

  async #sendOne(id: string, decision: Decision): Promise<void> {
    if (decision.is === "answer") {
      await this.#answer(this.#desk.space.questions.get(id), decision);
      return;
    }
    const proposal = this.#desk.space.proposals.get(id);
    if (proposal === undefined || !isOpen(proposal)) {
      this.#desk.tell("It was decided by somebody else in the meantime; nothing was sent.");
      return;
    }
    if (decision.is === "approve") await this.#approve(proposal, decision);
    else await this.#reject(proposal, decision);
  }

  /** Decision 001: fulfilling is making the request, word for word, in one's own name. */
  async #approve(proposal: Proposal, decision: Decision & { is: "approve" }): Promise<void> {
    const to = decision.to ?? this.targets(proposal);
    if (to.length === 0) {
      this.#desk.tell("Nothing was sent: the proposal leaves open who is to do it, and so did you.", "bad");
      return;
    }
    const params = decision.params ?? proposal.params;
    const payload: JsonObject = { jsonrpc: "2.0", id: this.#rpc++, method: proposal.method };
    if (Object.keys(params).length > 0) payload.params = params;
    await this.#desk.send({
      kind: "mcp/request",
      to,
      correlation_id: [proposal.id],
      ...(proposal.context === null ? {} : { context: proposal.context }),
      payload,
    });
  }

  async #reject(proposal: Proposal, decision: Decision & { is: "reject" }): Promise<void> {
    const to = [proposal.proposer];
    const no = await this.#desk.send({
      kind: "mcp/reject",
      to,
      correlation_id: [proposal.id],
      payload: { reason: decision.reason },
    });
    if (no === null || decision.words === "") return;
    await this.#desk.send({ kind: "chat", to, correlation_id: [no.id], payload: { text: decision.words, format: "plain" } });
  }

  async #answer(question: Question | undefined, { action, content }: Decision & { is: "answer" }): Promise<void> {
    if (question === undefined || question.end !== null) {
      this.#desk.tell("It was answered or taken back in the meantime; nothing was sent.");
      return;
    }
    await this.#desk.send({
      kind: "mcp/response",
      to: [question.asker],
      correlation_id: [question.id],
      ...(question.context === null ? {} : { context: question.context }),
      payload: { jsonrpc: "2.0", id: question.rpcId, result: { action, ...(content === null ? {} : { content }) } },
    });
  }

  #advance(): void {
    const waiting = this.#desk.waiting.value.filter((proposal) => this.canDecide(proposal.id));
    const at = this.#desk.waiting.value.findIndex((proposal) => proposal.id === this.selected.value);
    const after = waiting.find((proposal) => this.#desk.waiting.value.indexOf(proposal) > at) ?? waiting[0];
    if (after !== undefined) this.offer(after.id);
  }

  #replace(pending: Pending): void {
    this.pending.value = this.pending.value.map((one) => (one.key === pending.key ? pending : one));
  }

  #drop(key: number): void {
    this.#timers.delete(key);
    this.pending.value = this.pending.value.filter((one) => one.key !== key);
  }

  #leaving = (event: BeforeUnloadEvent): void => {
    if (this.pending.value.length > 0) event.preventDefault();
  };
}

/** In a few words, for the line that offers to undo. */
export function describe(pending: Pending, desk: Desk): string {
  if (pending.decision.is === "answer") return answering(pending, desk, pending.decision.action);
  const first = desk.space.proposals.get(pending.ids[0] ?? "");
  const what = pending.ids.length > 1 || first === undefined ? `${pending.ids.length} proposals` : (toolOf(first) ?? first.method);
  if (pending.decision.is === "reject") return `Rejecting ${what}`;
  return pending.decision.params === undefined ? `Approving ${what}` : `Approving ${what}, as you changed it`;
}

function answering(pending: Pending, desk: Desk, action: AnswerAction): string {
  const asker = visible(desk.space.questions.get(pending.ids[0] ?? "")?.asker ?? "somebody", 60);
  if (action === "accept") return `Answering ${asker}`;
  return action === "decline" ? `Declining what ${asker} asks` : `Leaving what ${asker} asks`;
}
