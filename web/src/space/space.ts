/**
 * PURE. The space as it is shown: envelopes in, and what was asked over HTTP; participants, proposals, rows out.
 *
 * The same events give the same space. There is no clock in it: the time is the event's.
 */

import { type Envelope, GATEWAY } from "../envelope";
import type { Participant as ListedParticipant, Proposal as ListedProposal } from "../http";
import { Autopilot } from "./autopilot";
import { Exchanges } from "./exchanges";
import { objectIn, textIn } from "./fields";
import { Participants } from "./participants";
import { type Proposal, Proposals, isOpen, toolOf } from "./proposals";
import { type Question, Questions } from "./questions";
import { type Row, Rows } from "./rows";
import { Streams } from "./streams";
import { Chats, Reasonings } from "./talk";
import { Tools } from "./tools";
import { mayDo } from "./capability_match";

export type Event =
  /** One more envelope, at the moment it came (or, for history, at the moment it names). */
  | { is: "envelope"; envelope: Envelope; at: number }
  /** Older ones than any that are here, oldest first. */
  | { is: "older"; envelopes: Envelope[]; at: number }
  | { is: "frame"; stream: string; data: string | Uint8Array; at: number }
  | { is: "participants"; listed: ListedParticipant[]; at: number }
  | { is: "proposals"; listed: ListedProposal[] }
  /** What the autopilot said before what is shown. */
  | { is: "autopilot"; envelopes: Envelope[]; at: number }
  /** Questions from before what is shown, each with what was said to it, in order. */
  | { is: "questions"; envelopes: Envelope[]; at: number };

/** What waits for somebody: a proposal to decide, or a question to answer. */
export type Item = Proposal | Question;

export function isAsked(item: Item): item is Question {
  return "asker" in item;
}

export interface Limits {
  envelopesMax: number;
  sizeMax: number;
}

const LIMITS: Limits = { envelopesMax: 100_000, sizeMax: 400_000_000 };
/** An answer that comes later than so many rows after its question has a row of its own, or it would not be seen. */
const NEAR_ROWS = 12;
const QUIET = new Set(["system/welcome", "space/invite-ack"]);

export class Space {
  readonly participants = new Participants();
  readonly autopilot = new Autopilot();
  proposals = new Proposals();
  questions = new Questions();
  exchanges = new Exchanges();
  reasonings = new Reasonings();
  chats = new Chats();
  streams = new Streams();
  tools = new Tools();
  rows: Rows;
  /** Grows with each event. */
  version = 0;
  #limits: Limits;

  constructor(limits: Limits = LIMITS) {
    this.#limits = limits;
    this.rows = this.#newRows();
  }

  get me(): string {
    return this.participants.me;
  }

  apply(event: Event): void {
    this.version += 1;
    switch (event.is) {
      case "envelope":
        this.participants.apply(event.envelope, event.at);
        this.#tell(event.envelope, event.at);
        break;
      case "older":
        this.#prepend(event.envelopes, event.at);
        break;
      case "frame":
        this.streams.frame(event.stream, event.data, event.at);
        break;
      case "participants":
        this.participants.know(event.listed, event.at);
        break;
      case "proposals":
        this.proposals.adopt(event.listed);
        for (const { id } of event.listed) this.#note(id);
        break;
      case "autopilot":
        for (const envelope of event.envelopes) this.#follow(envelope, momentOf(envelope, event.at));
        break;
      case "questions":
        for (const envelope of event.envelopes) this.questions.apply(envelope, momentOf(envelope, event.at));
        break;
    }
  }

  /** The open proposals that wait for me: I may decide them, they are not mine, and I have not rejected them. Oldest first. */
  waiting(now: number): Proposal[] {
    return this.proposals.open(now).filter((proposal) => this.waitsForMe(proposal, now));
  }

  /** All that waits for me in the order it is listed. */
  items(now: number): Item[] {
    return this.inOrder([...this.waiting(now), ...this.asked]);
  }

  /** The oldest first; proposals whose proposer has left come last. */
  inOrder(items: Item[]): Item[] {
    const isLast = (item: Item): number => Number(!isAsked(item) && this.hasLeft(item));
    return items.sort((one, other) => isLast(one) - isLast(other) || one.at - other.at);
  }

  /** Whether the proposer is no longer connected: nobody waits for the outcome. */
  hasLeft(proposal: Proposal): boolean {
    return this.participants.get(proposal.proposer)?.here !== true;
  }


  /** The questions that I was asked, and may answer, and nobody has. */
  get asked(): Question[] {
    return this.questions.openFor(this.me).filter((question) => this.waitsForAnswer(question));
  }

  waitsForAnswer(question: Question): boolean {
    if (question.end !== null || !question.to.includes(this.me)) return false;
    const payload = { jsonrpc: "2.0", id: question.rpcId, result: { action: "cancel" } };
    return mayDo(this.participants.mine, { kind: "mcp/response", to: [question.asker], payload });
  }

  waitsForMe(proposal: Proposal, now: number): boolean {
    const { me } = this;
    if (!isOpen(proposal, now) || proposal.proposer === me) return false;
    if (proposal.exclusive && !proposal.preferred.includes(me)) return false;
    if (proposal.rejections.some((said) => said.by === me)) return false;
    return this.mayReject(proposal) || this.mayApprove(proposal);
  }

  mayApprove(proposal: Proposal): boolean {
    const payload = { jsonrpc: "2.0", id: 0, method: proposal.method, params: proposal.params, via: "page" };
    const targets = proposal.to.length > 0 ? [proposal.to] : [...this.participants.all.keys()].map((id) => [id]);
    return targets.some((to) => mayDo(this.participants.mine, { kind: "mcp/request", to, payload }));
  }

  mayReject(proposal: Proposal): boolean {
    const draft = { kind: "mcp/reject", to: [proposal.proposer], payload: { reason: "disagree" } };
    return mayDo(this.participants.mine, draft);
  }

  /** Whom an approval can be sent to: whom the proposal names, else who offers the tool. */
  targetsOf(proposal: Proposal): string[] {
    if (proposal.to.length > 0) return proposal.to;
    const tool = toolOf(proposal);
    return tool === null ? [] : this.tools.offering(tool).map((offered) => offered.participant);
  }

  #tell(envelope: Envelope, at: number): void {
    this.chats.me = this.participants.me;
    if (envelope.kind === "system/welcome") this.streams.welcome(envelope.payload ?? {}, at);
    if (QUIET.has(envelope.kind) || this.#isKnown(envelope)) return;
    const home = this.#home(envelope, at);
    if (home === null) this.rows.add(envelope, at);
    else this.rows.fold(home, envelope);
  }

  /** An id may come twice: clients of the TypeScript implementation count from the start again. */
  #isKnown(envelope: Envelope): boolean {
    const row = this.rows.of(envelope.id);
    if (row === undefined) return false;
    const same = [row.envelope, ...row.folded].find((one) => one.id === envelope.id);
    return same !== undefined && same.from === envelope.from && same.ts === envelope.ts && same.kind === envelope.kind;
  }

  /** Take the envelope into all that is followed; return the row that it belongs into, null for one of its own. */
  #home(envelope: Envelope, at: number): Row | null {
    for (const proposal of this.proposals.apply(envelope, at)) {
      if (envelope.id === proposal.id) this.#note(proposal.id);
      this.rows.touch(this.rows.of(proposal.id));
    }
    for (const question of this.questions.apply(envelope, at)) this.rows.touch(this.rows.of(question.id));
    const reasoning = this.reasonings.apply(envelope, at);
    const [space] = envelope.kind.split("/", 1);
    switch (space) {
      case "mcp":
        return this.#exchange(envelope, at);
      case "reasoning":
        return reasoning === null || reasoning.start.id === envelope.id ? null : (this.rows.of(reasoning.start.id) ?? null);
      case "chat":
        return this.#chat(envelope, at);
      case "stream":
        this.streams.apply(envelope, at);
        return null;
      case "autopilot":
        return this.#follow(envelope, at);
      case "system":
        if (envelope.kind === "system/presence" && envelope.from === GATEWAY) this.#presence(envelope, at);
        return null;
      default:
        return null;
    }
  }

  /** A decision of the autopilot belongs to its proposal. */
  #follow(envelope: Envelope, at: number): Row | null {
    const proposal = this.autopilot.apply(envelope, at);
    const row = proposal === null ? undefined : this.rows.of(proposal);
    this.rows.touch(row);
    return envelope.kind === "autopilot/decision" ? (row ?? null) : null;
  }

  #note(id: string): void {
    const proposal = this.proposals.get(id);
    const tool = proposal === undefined ? null : toolOf(proposal);
    if (proposal !== undefined && tool !== null) this.tools.note(id, proposal.to, tool);
  }

  #exchange(envelope: Envelope, at: number): Row | null {
    if (saysToolsChanged(envelope)) this.tools.outdated(envelope.from);
    const exchange = this.exchanges.apply(envelope, at);
    if (exchange === null || exchange.request.id === envelope.id) return null;
    const row = this.rows.of(exchange.request.id);
    if (row === undefined) return null;
    if (envelope.kind === "mcp/response") {
      this.tools.apply(exchange, envelope);
      if (this.rows.since(row) > NEAR_ROWS) {
        this.rows.touch(row);
        return null;
      }
    }
    return row;
  }

  #chat(envelope: Envelope, at: number): Row | null {
    const chat = this.chats.apply(envelope, at);
    if (chat === null || chat.envelope.id === envelope.id) return null;
    return this.rows.of(chat.envelope.id) ?? null;
  }

  #presence(envelope: Envelope, at: number): void {
    const id = textIn(objectIn(envelope.payload?.participant).id);
    if (id === null) return;
    if (envelope.payload?.event === "leave") this.reasonings.left(id, at);
    else this.tools.outdated(id); // it may have been started anew, as something else
  }

  #newRows(): Rows {
    return new Rows(this.#limits.envelopesMax, this.#limits.sizeMax, (id) => {
      this.exchanges.forget(id);
      this.reasonings.forget(id);
      this.chats.forget(id);
    });
  }

  /** What came before is told again from the start: pairs may lie on both sides of where we began. */
  #prepend(older: Envelope[], at: number): void {
    const kept = this.rows.list.flatMap((row) => [
      { envelope: row.envelope, at: row.at },
      ...row.folded.map((envelope) => ({ envelope, at: Date.parse(envelope.ts ?? "") || row.at })),
    ]);
    const before = older.map((envelope) => ({ envelope, at: momentOf(envelope, at) }));
    const { proposals: listed, questions: asked, tools } = this;
    this.proposals = new Proposals();
    this.questions = new Questions();
    this.tools = new Tools();
    this.exchanges = new Exchanges();
    this.reasonings = new Reasonings();
    this.chats = new Chats();
    this.rows = this.#newRows();
    for (const one of [...before, ...kept]) this.#tell(one.envelope, one.at);
    this.proposals.take(listed);
    this.questions.take(asked);
    this.tools.take(tools);
  }
}

/** Whether somebody says with it that its tools are others now. */
export function saysToolsChanged(envelope: Envelope): boolean {
  return envelope.kind === "mcp/request" && envelope.payload?.method === "notifications/tools/list_changed";
}

/** As the envelope claims, but never later than `at`. */
export function momentOf(envelope: Envelope, at = Infinity): number {
  return Math.min(Date.parse(envelope.ts ?? "") || (at === Infinity ? 0 : at), at);
}
