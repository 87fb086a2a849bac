/** PURE. What was proposed, and the whole life of each proposal: who decided what, when, and whether that is what ran. */

import type { Envelope } from "../envelope";
import type { Proposal as Listed } from "../http";
import { type Json, type JsonObject, isObject } from "../json";
import { type Difference, differences } from "./differences";
import { hasFailed } from "./exchanges";
import { momentIn, numberIn, objectIn, roughSize, textIn, textsIn } from "./fields";
import { surplus } from "./keeping";

export interface Rejection {
  id: string;
  by: string;
  at: number;
  reason: string | null;
  /** What whoever rejected it said about that (§3.3.3). */
  words: string[];
}

export interface Answer {
  id: string;
  by: string;
  at: number;
  failed: boolean;
  payload: JsonObject;
}

/** A request that named the proposal (decision 001). `edited`: it is not what was proposed. */
export interface Fulfilment {
  id: string;
  by: string;
  at: number;
  to: string[];
  /** null: the request itself was not seen. */
  edited: boolean | null;
  changes: Difference[];
  /** It came after the proposal was closed. */
  late: boolean;
  answer: Answer | null;
}

export interface Withdrawal {
  id: string;
  at: number;
  reason: string | null;
}

export type ProposalStatus = "open" | "approved" | "fulfilled" | "failed" | "rejected" | "withdrawn" | "timed_out";

export interface Proposal {
  id: string;
  proposer: string;
  to: string[];
  method: string;
  params: JsonObject;
  context: string | null;
  at: number;
  expiresAt: number | null;
  preferred: string[];
  exclusive: boolean;
  rejections: Rejection[];
  fulfilments: Fulfilment[];
  withdrawn: Withdrawal | null;
  /** What was said about it in chat. */
  remarks: { id: string; by: string; text: string }[];
  /** About how much memory it takes, with what was answered. */
  size: number;
}

const KEPT_MAX = 4_000;
const SLACK = 200;
const SIZE_MAX = 100_000_000;
const SIZE_LEAST = 500;
const SAID_MAX = 64;
const NAMED_MAX = 4;
const WORDS_MAX = 4_096;

/** Where it stands. The first fulfilment decides; a rejection alone closes nothing (§3.3.2). */
export function statusOf(proposal: Proposal): ProposalStatus {
  const first = proposal.fulfilments[0];
  if (first !== undefined && !(first.late && proposal.withdrawn !== null)) {
    if (first.answer === null) return "approved";
    return first.answer.failed ? "failed" : "fulfilled";
  }
  if (proposal.withdrawn === null) return "open";
  if (proposal.withdrawn.reason === "timeout") return "timed_out";
  return proposal.rejections.length > 0 ? "rejected" : "withdrawn";
}

export function isOpen(proposal: Proposal): boolean {
  return proposal.fulfilments.length === 0 && proposal.withdrawn === null;
}

/** The tool that it would call; null if it is something else. */
export function toolOf(proposal: { method: string; params: JsonObject }): string | null {
  return proposal.method === "tools/call" ? textIn(proposal.params.name) : null;
}

export function argumentsOf(proposal: { method: string; params: JsonObject }): JsonObject {
  return proposal.method === "tools/call" ? objectIn(proposal.params.arguments) : {};
}

/** All proposals of the space, fed with its envelopes in order. */
export class Proposals {
  readonly all = new Map<string, Proposal>();
  /** A rejection or a fulfilment -> the proposals it is about. */
  #about = new Map<string, string[]>();
  #size = 0;

  get(id: string): Proposal | undefined {
    return this.all.get(id);
  }

  get open(): Proposal[] {
    return [...this.all.values()].filter(isOpen);
  }

  /** Take the next envelope; return the proposals it changed. */
  apply(envelope: Envelope, at: number): Proposal[] {
    switch (envelope.kind) {
      case "mcp/proposal":
        return this.#propose(envelope, at);
      case "mcp/reject":
        return this.#named(envelope).filter((proposal) => this.#reject(proposal, envelope, at));
      case "mcp/withdraw":
        return this.#named(envelope).filter((proposal) => withdraw(proposal, envelope, at));
      case "mcp/request":
        return this.#named(envelope).filter((proposal) => this.#fulfil(proposal, envelope, at));
      case "mcp/response":
        return this.#concerned(envelope).filter((proposal) => this.#answer(proposal, envelope, at));
      case "chat":
        return [
          ...this.#concerned(envelope).filter((proposal) => explain(proposal, envelope)),
          ...this.#named(envelope).filter((proposal) => remark(proposal, envelope)),
        ];
      default:
        return [];
    }
  }

  /** Know of what the gateway listed: proposals older than the history that was asked for, and what was missed of others. */
  adopt(listed: Listed[]): void {
    const all = listed.map(recalled);
    for (const told of all) {
      const known = this.all.get(told.id);
      if (known?.proposer === told.proposer) this.#complete(known, told);
    }
    this.#insert(all.filter(({ id }) => !this.all.has(id)));
  }

  #complete(known: Proposal, told: Proposal): void {
    const unknown = ({ id }: { id: string }): boolean => !this.#about.has(id);
    const [rejections, fulfilments] = [told.rejections.filter(unknown), told.fulfilments.filter(unknown)];
    known.rejections.push(...rejections);
    known.fulfilments.push(...fulfilments);
    known.withdrawn ??= told.withdrawn;
    for (const said of [...rejections, ...fulfilments]) this.#remember(said.id, known.id);
  }

  /** Know of what another book knows and this one does not. */
  take(other: Proposals): void {
    this.#insert([...other.all.values()].filter((proposal) => !this.all.has(proposal.id)));
  }

  #insert(older: Proposal[]): void {
    if (older.length === 0) return;
    const known = [...this.all.values()];
    this.all.clear();
    for (const proposal of [...older, ...known].sort((one, other) => one.at - other.at)) this.all.set(proposal.id, proposal);
    for (const proposal of older) {
      this.#size += proposal.size;
      for (const said of [...proposal.rejections, ...proposal.fulfilments]) this.#remember(said.id, proposal.id);
    }
  }

  #propose(envelope: Envelope, at: number): Proposal[] {
    const method = textIn(envelope.payload?.method);
    const known = this.all.get(envelope.id);
    if (method === null || (known !== undefined && !isRecalled(known))) return [];
    if (known !== undefined && known.proposer !== envelope.from) return [];
    const proposal = known ?? fresh(envelope, method, at);
    if (known !== undefined) known.context = envelope.context ?? null;
    else this.#size += proposal.size;
    this.all.set(envelope.id, proposal);
    this.#shrink();
    return [proposal];
  }

  /** Only whom the request was sent to can answer it. */
  #answer(proposal: Proposal, envelope: Envelope, at: number): boolean {
    const about = proposal.fulfilments.find((said) => envelope.correlation_id?.includes(said.id));
    if (about === undefined || about.answer !== null) return false;
    if (about.to.length > 0 && !about.to.includes(envelope.from)) return false;
    const payload = envelope.payload ?? {};
    about.answer = { id: envelope.id, by: envelope.from, at, failed: hasFailed(envelope), payload };
    const size = roughSize(payload);
    proposal.size += size;
    this.#size += size;
    this.#shrink();
    return true;
  }

  #reject(proposal: Proposal, envelope: Envelope, at: number): boolean {
    if (proposal.rejections.length >= SAID_MAX || proposal.rejections.some((said) => said.id === envelope.id)) return false;
    const reason = textIn(envelope.payload?.reason)?.slice(0, WORDS_MAX) ?? null;
    proposal.rejections.push({ id: envelope.id, by: envelope.from, at, reason, words: [] });
    this.#remember(envelope.id, proposal.id);
    return true;
  }

  #fulfil(proposal: Proposal, envelope: Envelope, at: number): boolean {
    const method = textIn(envelope.payload?.method);
    if (method === null || (method.startsWith("notifications/") && method !== proposal.method)) return false;
    if (proposal.fulfilments.length >= SAID_MAX) return false;
    if (proposal.fulfilments.some((said) => said.id === envelope.id)) return false;
    const changes = changesIn(proposal, method, envelope);
    const late = !isOpen(proposal);
    const { id, from: by, to = [] } = envelope;
    proposal.fulfilments.push({ id, by, at, to, edited: changes.length > 0, changes, late, answer: null });
    this.#remember(id, proposal.id);
    return true;
  }

  #named(envelope: Envelope): Proposal[] {
    const ids = (envelope.correlation_id ?? []).slice(0, NAMED_MAX);
    return ids.map((id) => this.all.get(id)).filter((found) => found !== undefined);
  }

  #concerned(envelope: Envelope): Proposal[] {
    const ids = (envelope.correlation_id ?? []).slice(0, NAMED_MAX).flatMap((id) => this.#about.get(id) ?? []);
    return ids.map((id) => this.all.get(id)).filter((found) => found !== undefined);
  }

  #remember(about: string, proposal: string): void {
    this.#about.set(about, [...(this.#about.get(about) ?? []), proposal]);
  }

  #shrink(): void {
    if (this.all.size <= KEPT_MAX + SLACK && this.#size <= SIZE_MAX) return;
    const whose = ({ proposer }: Proposal): string => proposer;
    const isSettled = (proposal: Proposal): boolean => !isOpen(proposal);
    const keeping = { countMax: KEPT_MAX, sizeMax: SIZE_MAX * 0.9, isSettled, whose };
    for (const proposal of surplus([...this.all.values()], keeping)) this.#drop(proposal);
  }

  #drop(proposal: Proposal): void {
    this.all.delete(proposal.id);
    this.#size -= proposal.size;
    for (const said of [...proposal.rejections, ...proposal.fulfilments]) this.#about.delete(said.id);
  }
}

function fresh(envelope: Envelope, method: string, at: number): Proposal {
  const payload = envelope.payload ?? {};
  const targeting = objectIn(payload.targeting);
  const ttl = numberIn(payload.ttl_seconds);
  const preferred = textsIn(targeting.preferred).slice(0, SAID_MAX);
  return {
    id: envelope.id,
    proposer: envelope.from,
    to: envelope.to ?? [],
    method,
    params: objectIn(payload.params),
    context: envelope.context ?? null,
    at,
    expiresAt: momentIn(payload.expires_at) ?? (ttl === null ? null : at + ttl * 1000),
    preferred,
    exclusive: targeting.exclusive === true && preferred.length > 0,
    rejections: [],
    fulfilments: [],
    withdrawn: null,
    remarks: [],
    size: SIZE_LEAST + roughSize(payload.params),
  };
}

const recalledOnes = new WeakSet<Proposal>();

function isRecalled(proposal: Proposal): boolean {
  return recalledOnes.has(proposal);
}

function recalled(listed: Listed): Proposal {
  const at = momentIn(listed.at) ?? 0;
  const proposal: Proposal = {
    id: listed.id,
    proposer: listed.proposer,
    to: listed.to,
    method: listed.method ?? "",
    params: isObject(listed.params) ? listed.params : {},
    context: null,
    at,
    expiresAt: null,
    preferred: [],
    exclusive: false,
    rejections: listed.rejections.map(({ id, by, reason }) => ({ id, by, at, reason: reason ?? null, words: [] })),
    fulfilments: listed.fulfilments.map(({ id, by }) => ({
      id, by, at, to: listed.to, edited: null, changes: [], late: false, answer: null,
    })),
    withdrawn: listed.withdrawals.slice(0, 1).map(({ id, reason }) => ({ id, at, reason: reason ?? null }))[0] ?? null,
    remarks: [],
    size: SIZE_LEAST + roughSize(listed.params),
  };
  recalledOnes.add(proposal);
  return proposal;
}

/** Whom it was sent to counts too, unless the proposal left that open. */
function changesIn(proposal: Proposal, method: string, envelope: Envelope): Difference[] {
  const to = envelope.to ?? [];
  const was: Json = { method: proposal.method, params: proposal.params, to: proposal.to.length > 0 ? proposal.to : to };
  const is: Json = { method, params: objectIn(envelope.payload?.params), to };
  return differences(was, is);
}

function withdraw(proposal: Proposal, envelope: Envelope, at: number): boolean {
  if (envelope.from !== proposal.proposer || proposal.withdrawn !== null) return false;
  proposal.withdrawn = { id: envelope.id, at, reason: textIn(envelope.payload?.reason)?.slice(0, WORDS_MAX) ?? null };
  return true;
}

function explain(proposal: Proposal, envelope: Envelope): boolean {
  const about = proposal.rejections.find((said) => envelope.correlation_id?.includes(said.id));
  const text = textIn(envelope.payload?.text);
  if (about === undefined || text === null || about.by !== envelope.from || about.words.length >= 8) return false;
  about.words.push(text.slice(0, WORDS_MAX));
  return true;
}

function remark(proposal: Proposal, envelope: Envelope): boolean {
  const text = textIn(envelope.payload?.text);
  if (text === null || proposal.remarks.length >= SAID_MAX) return false;
  proposal.remarks.push({ id: envelope.id, by: envelope.from, text: text.slice(0, WORDS_MAX) });
  return true;
}
