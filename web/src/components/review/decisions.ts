/**
 * Decisions on their way: each waits three seconds, in which it can be taken back, and is then sent once; without a
 * connection, or without whom it is for, it is held a while longer.
 */

import { computed, effect, signal } from "@preact/signals";

import { type JsonObject, own } from "../../json";
import { type Proposal, isOpen, statusOf } from "../../space/proposals";
import type { AnswerAction, Question } from "../../space/questions";
import type { Envelope, When } from "../../wire";
import type { PageState } from "../app/page_state";
import { Disclosure } from "./disclosure";
import { cardLine } from "../values/summaries";

export type Decision =
  /** `params` where they were changed; `to` where the proposal left open who is to do it; `rule`: what `autopilot/ratify` says. */
  | { is: "approve"; params?: JsonObject; to?: string[]; rule?: JsonObject }
  | { is: "reject"; reason: string; message: string }
  /** To a question; `content` where it is a form that was filled in. */
  | { is: "answer"; action: AnswerAction; content: JsonObject | null };

export interface Pending {
  key: number;
  ids: string[];
  decision: Decision;
  /** Whom each approval goes to: as it was when it was decided, whoever offers the tool by the time it is sent. */
  targets: ReadonlyMap<string, string[]>;
  /** Who has to be here when it is sent: those who were when it was decided, or all, where nobody could know. */
  awaited: string[];
  /** Those of `ids` that were picked: they are again, if it is taken back. */
  picked: string[];
  is: "waiting" | "held" | "sending";
}

const UNDO_MS = 3_000;
/** What was decided is not done later than whoever decided it would expect. */
const HELD_MAX_MS = 30_000;
/** The next proposal moves up when one is decided: a second keystroke right then was meant for the first. */
const GUARD_MS = 400;
/** Why a decision is not sent after all. */
const CLOSED: Record<string, string> = {
  gone: "This page no longer has the proposal",
  withdrawn: "The proposer withdrew it in the meantime",
  expired: "It expired in the meantime",
};

export class Decisions {
  readonly pending = signal<Pending[]>([]);
  /** The proposal that is looked at. */
  readonly selected = signal<string | null>(null);
  /** Those picked to be decided at once. */
  readonly marked = signal<ReadonlySet<string>>(new Set());
  /** Decided or closed while they were shown: they stay in place until somebody moves on. */
  readonly kept = signal<readonly string[]>([]);
  /** Proposal -> who is to do it, where the proposal left that open and somebody said so. */
  readonly chosen = signal<ReadonlyMap<string, string>>(new Map());
  /** For a moment after the list moved by itself. */
  readonly guarded = signal(false);
  readonly underWay = computed(() => new Set(this.pending.value.flatMap((one) => one.ids)));

  #page: PageState;
  #key = 0;
  #rpc = Math.floor(Math.random() * 1e9);
  #timers = new Map<number, number>();
  #guard: number | undefined;
  #hasMovedOn = false;
  #isResting = false;
  #mine = new Set<string>();
  /** By the proposal itself: another that takes its id was not shown. */
  #disclosures = new WeakMap<Proposal, Disclosure>();
  #deaf: () => void;

  constructor(page: PageState) {
    this.#page = page;
    window.addEventListener("beforeunload", this.#leaving);
    this.#deaf = effect(() => {
      page.state.value;
      page.pulse.value;
      queueMicrotask(() => this.#reconsider());
    });
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
    return this.#isUndecided(id) && !this.underWay.value.has(id);
  }

  /** The question that a keystroke is about, if it is about one. */
  get question(): Question | undefined {
    const [id] = this.aimed;
    return id === undefined ? undefined : this.#page.space.questions.get(id);
  }

  /** `then`: whether the next one is chosen, or somebody was writing and asks for that when they are ready. */
  decide(ids: string[], decision: Decision, then: "advance" | "rest" = "advance"): void {
    const open = ids.filter((id) => this.canDecide(id));
    if (open.length === 0) return;
    const targets = new Map(open.map((id) => [id, decision.is === "approve" ? this.#targetsFor(id, decision) : []]));
    const awaited = [...new Set([...targets.values()].flat())].filter((who) => !this.#isLive || this.#isHere(who));
    const picked = open.filter((id) => this.marked.value.has(id));
    const pending: Pending = { key: this.#key++, ids: open, decision, targets, awaited, picked, is: "waiting" };
    this.pending.value = [...this.pending.value, pending];
    this.marked.value = new Set([...this.marked.value].filter((id) => !open.includes(id)));
    for (const id of open) this.#mine.add(id);
    this.#timers.set(pending.key, window.setTimeout(() => this.#due(pending), UNDO_MS));
    if (!open.includes(this.selected.value ?? "")) return;
    if (then === "rest") this.#isResting = true;
    else this.#advance();
  }

  /** Approve, as they are, those that were wholly shown and of which it is known who is to do them. */
  approve(ids: string[], rule?: JsonObject): void {
    const { space } = this.#page;
    const known = ids.map((id) => space.proposals.get(id)).filter((proposal) => proposal !== undefined);
    const able = known.filter((proposal) => this.targets(proposal).length > 0 && space.mayApprove(proposal));
    const unshown = able.filter((proposal) => !this.isShown(proposal));
    const ready = able.filter((proposal) => !unshown.includes(proposal));
    this.decide(ready.map(({ id }) => id), { is: "approve", ...(rule === undefined ? {} : { rule }) });
    if (able.length < ids.length) {
      const left = ids.length === 1 ? "" : ` Not approved: ${ids.length - able.length} of ${ids.length}.`;
      this.#page.tell(`Choose a participant to send it to first, or reject it: you may not approve it as it is.${left}`);
    }
    const [first] = unshown;
    if (first === undefined) return;
    if (ids.length === 1) {
      this.#page.tell("Not approved: part of it is not shown. Choose “Show everything” first.");
      return;
    }
    this.offer(first.id);
    this.#page.tell(`Not approved: ${unshown.length} of ${ids.length}. Some of their content is not shown: review each one first.`);
  }

  /** Whether all that an approval would send was to be seen: in the open card, or in the one line of a closed one. */
  isShown(proposal: Proposal): boolean {
    const disclosure = this.disclosure(proposal);
    return disclosure.isWhole || (!disclosure.isOnPage && cardLine(proposal).isWhole);
  }

  /** What of the proposal's params is unfolded. */
  disclosure(proposal: Proposal): Disclosure {
    const found = this.#disclosures.get(proposal) ?? new Disclosure(proposal.params);
    this.#disclosures.set(proposal, found);
    return found;
  }

  /** Take back the last, or this one; returns whether there was one. */
  undo(key?: number): boolean {
    const waiting = this.pending.value.filter((one) => one.is !== "sending");
    const taken = key === undefined ? waiting.at(-1) : waiting.find((one) => one.key === key);
    if (taken === undefined) return false;
    window.clearTimeout(this.#timers.get(taken.key));
    this.#drop(taken.key);
    for (const id of taken.ids) this.#mine.delete(id);
    this.marked.value = new Set([...this.marked.value, ...taken.picked.filter((id) => this.canDecide(id))]);
    this.#isResting = false;
    this.#release();
    this.selected.value = taken.ids[0] ?? this.selected.value;
    return true;
  }

  toggleMark(id: string): void {
    const marked = new Set(this.marked.value);
    if (!marked.delete(id) && this.canDecide(id) && this.#page.space.proposals.get(id) !== undefined) marked.add(id);
    this.marked.value = marked;
  }

  /** Somebody chose it, or with null folded what was chosen: what a key does from now on is meant for it. */
  select(id: string | null): void {
    this.#release();
    this.#isResting = id === null;
    this.selected.value = id;
    this.kept.value = this.kept.value.filter((kept) => kept === id);
  }

  /** Whom an approval goes to: whom the proposal names, or somebody chose, or the only one who offers the tool. */
  targets(proposal: Proposal): string[] {
    const chosen = this.chosen.value.get(proposal.id);
    if (proposal.to.length === 0 && chosen !== undefined) return [chosen];
    const targets = this.#page.space.targetsOf(proposal);
    return proposal.to.length > 0 || targets.length === 1 ? targets : [];
  }

  /** Say who is to do it; nobody where `who` is empty. */
  choose(id: string, who: string): void {
    const chosen = new Map(this.chosen.value);
    if (who === "") chosen.delete(id);
    else chosen.set(id, who);
    this.chosen.value = chosen;
  }

  /** Whether it was decided here. */
  isMine(id: string): boolean {
    return this.#mine.has(id);
  }

  /** Choose for somebody: what a key does then is not meant for it for a moment. */
  offer(id: string | null): void {
    if (id === null) this.#isResting = false;
    if (id === this.selected.value) return;
    this.selected.value = id;
    this.hold();
  }

  /** The next one is not chosen for somebody who was writing: what they type now is no decision. */
  get isResting(): boolean {
    return this.#isResting;
  }

  /** The next one was chosen a moment ago, after a decision: a key that asks for the next one means that. */
  get hasMovedOn(): boolean {
    return this.#hasMovedOn;
  }

  /** What is looked at is not what it was a moment ago: a key pressed right now was meant for that. */
  hold(): void {
    this.guarded.value = true;
    window.clearTimeout(this.#guard);
    this.#guard = window.setTimeout(() => this.#release(), GUARD_MS);
  }

  /** What keeps it from being sent: the connection, or who is not here; null, where nothing does. */
  lacking(pending: Pending): "connection" | string[] | null {
    if (!this.#isLive) return "connection";
    const absent = this.#absent(pending);
    return absent.length > 0 ? absent : null;
  }

  stop(): void {
    this.#deaf();
    window.removeEventListener("beforeunload", this.#leaving);
    for (const timer of this.#timers.values()) window.clearTimeout(timer);
  }

  #isUndecided(id: string): boolean {
    const { space } = this.#page;
    const [proposal, question] = [space.proposals.get(id), space.questions.get(id)];
    return proposal !== undefined ? space.waitsForMe(proposal, this.#page.now.value) : question !== undefined && space.waitsForAnswer(question);
  }

  get #isLive(): boolean {
    return this.#page.state.peek().is === "live";
  }

  #isHere(who: string): boolean {
    return this.#page.space.participants.get(who)?.here === true;
  }

  #absent({ awaited }: Pending): string[] {
    return awaited.filter((who) => !this.#isHere(who));
  }

  #release(): void {
    window.clearTimeout(this.#guard);
    this.guarded.value = false;
    this.#hasMovedOn = false;
  }

  /** Its three seconds are over; where nobody would hear it, it is held, and can be taken back for as long. */
  #due(pending: Pending): void {
    if (this.lacking(pending) === null) {
      void this.#send(pending);
      return;
    }
    this.#replace({ ...pending, is: "held" });
    this.#timers.set(pending.key, window.setTimeout(() => this.#giveUp(pending), HELD_MAX_MS));
  }

  #reconsider(): void {
    for (const pending of this.pending.peek()) {
      if (pending.is !== "held" || (this.lacking(pending) !== null && pending.ids.some((id) => this.#isUndecided(id)))) continue;
      window.clearTimeout(this.#timers.get(pending.key));
      void this.#send(pending);
    }
  }

  #giveUp(pending: Pending): void {
    const lacking = this.lacking(pending);
    const what = Array.isArray(lacking) ? `${lacking.join(", ")} did not reconnect` : "there was no connection";
    this.#page.tell(`Nothing was sent: ${what} within 30 seconds. It is still waiting for you.`, "bad");
    for (const id of pending.ids) this.#mine.delete(id);
    this.#drop(pending.key);
  }

  async #send(pending: Pending): Promise<void> {
    this.#replace({ ...pending, is: "sending" });
    const sent = await Promise.all(pending.ids.map((id) => this.#sendOne(id, pending)));
    pending.ids.filter((_, at) => sent[at] === null).forEach((id) => this.#mine.delete(id));
    this.#drop(pending.key);
  }

  /** What was sent, or null. */
  async #sendOne(id: string, pending: Pending): Promise<Envelope | null> {
    const { decision, targets } = pending;
    if (decision.is === "answer") return this.#answer(this.#page.space.questions.get(id), decision);
    const proposal = this.#page.space.proposals.get(id);
    const status = proposal === undefined ? "gone" : statusOf(proposal, Date.now());
    if (proposal === undefined || status !== "open") {
      const what = own(CLOSED, status) ?? "Someone else decided it in the meantime";
      this.#page.tell(`${what}; nothing was sent.`);
      return null;
    }
    const when = (): When => (!this.#isStillOpen(id) ? "never" : this.#absent(pending).length === 0 ? "now" : "later");
    if (decision.is === "approve") return this.#approve(proposal, decision, targets.get(id) ?? [], when);
    return this.#reject(proposal, decision, when);
  }

  /** Decision 001: fulfilling is making the request, word for word, in one's own name. */
  async #approve(proposal: Proposal, decision: Decision & { is: "approve" }, to: string[], when: () => When): Promise<Envelope | null> {
    if (to.length === 0) {
      this.#page.tell("Nothing was sent: the proposal names no participant, and you did not choose one.", "bad");
      return null;
    }
    const params = decision.params ?? proposal.params;
    const payload: JsonObject = { jsonrpc: "2.0", id: this.#rpc++, method: proposal.method, via: "page" };
    if (Object.keys(params).length > 0) payload.params = params;
    const context = proposal.context === null ? {} : { context: proposal.context };
    const request = { kind: "mcp/request", to, correlation_id: [proposal.id], ...context, payload };
    const sent = await this.#page.send(request, when);
    if (sent !== null && decision.rule !== undefined) void this.#page.order("autopilot/ratify", decision.rule, [proposal.id]);
    return sent;
  }

  #reject(proposal: Proposal, decision: Decision & { is: "reject" }, when: () => When): Promise<Envelope | null> {
    const { reason, message } = decision;
    const payload = message === "" ? { reason } : { reason, message };
    return this.#page.send({ kind: "mcp/reject", to: [proposal.proposer], correlation_id: [proposal.id], payload }, when);
  }

  async #answer(question: Question | undefined, { action, content }: Decision & { is: "answer" }): Promise<Envelope | null> {
    if (question === undefined || question.end !== null) {
      this.#page.tell("It was answered or withdrawn in the meantime; nothing was sent.");
      return null;
    }
    const response = {
      kind: "mcp/response",
      to: [question.asker],
      correlation_id: [question.id],
      ...(question.context === null ? {} : { context: question.context }),
      payload: { jsonrpc: "2.0", id: question.rpcId, result: { action, ...(content === null ? {} : { content }) } },
    };
    return this.#page.send(response, () => (this.#page.space.questions.get(question.id)?.end == null ? "now" : "never"));
  }

  /** Asked again when it leaves: without a connection that may be half a minute later. */
  #isStillOpen(id: string): boolean {
    const proposal = this.#page.space.proposals.get(id);
    return proposal === undefined || isOpen(proposal, Date.now());
  }

  #targetsFor(id: string, { to }: Decision & { is: "approve" }): string[] {
    const proposal = this.#page.space.proposals.get(id);
    return to ?? (proposal === undefined ? [] : this.targets(proposal));
  }

  #advance(): void {
    const waiting = this.#page.waiting.value;
    const at = waiting.findIndex(({ id }) => id === this.selected.value);
    const after = [...waiting.slice(at + 1), ...waiting.slice(0, at + 1)].find(({ id }) => this.canDecide(id));
    if (after === undefined) return;
    this.offer(after.id);
    this.#hasMovedOn = true;
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
