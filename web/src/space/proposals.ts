/**
 * PURE. The life of each proposal (§3.2, §3.3): who decided what, when, and whether that is what ran.
 *
 * The twin of `mew.proposals` in Python: both test suites run `tests/proposals/vectors.json`.
 */

import type { Envelope } from "../envelope";
import type { Fulfilment as ListedFulfilment, Proposal as Listed } from "../http";
import { type Json, type JsonObject, exactDigits, isObject, own } from "../json";
import { cut } from "../text";
import { type Difference, differences, same } from "./differences";
import { listIn, momentIn, objectIn, roughSize, textIn } from "./fields";
import { surplus } from "./eviction";

export interface Rejection {
  id: string;
  by: string;
  at: number;
  /** A code of §3.3.3, or any other text. */
  reason: string | null;
  message: string | null;
  /** Chats in which the reviewer added to it (§3.3.3). */
  explanations: Explanation[];
}

export interface Explanation {
  id: string;
  text: string;
}

export interface Answer {
  id: string;
  by: string;
  at: number;
  failed: boolean;
  payload: JsonObject;
}

/** A request that names a proposal. */
export interface NamingRequest {
  id: string;
  by: string;
  at: number;
  to: string[];
  method: string;
  tool: string | null;
}

/** A request that carries a proposal out (decision 001), compared with what was proposed. */
export interface Fulfilment extends NamingRequest {
  edited: boolean;
  changes: Difference[];
  /** Sent after the proposal was withdrawn or had expired. */
  late: boolean;
  /** The surface it was approved on, as its sender says. */
  via: string | null;
  answer: Answer | null;
}

export interface Withdrawal {
  id: string;
  at: number;
  reason: string | null;
}

export type ProposalStatus = "open" | "approved" | "fulfilled" | "failed" | "withdrawn" | "expired";

export interface Proposal {
  id: string;
  proposer: string;
  to: string[];
  method: string;
  params: JsonObject;
  context: string | null;
  at: number;
  /** What the proposer says it is for: a claim, and no part of what runs. */
  why: string | null;
  expiresAt: number | null;
  preferred: string[];
  exclusive: boolean;
  rejections: Rejection[];
  fulfilments: Fulfilment[];
  /** Requests that name it and ask for something else: they change nothing. */
  unrelated: NamingRequest[];
  withdrawn: Withdrawal | null;
  /** Chats about it. */
  remarks: { id: string; by: string; text: string }[];
  /** Approximate memory use in bytes. */
  size: number;
}

/** What is proposed or requested. */
export interface Operation {
  method: string;
  params: JsonObject;
}

const KEPT_MAX = 4_000;
const SLACK = 200;
const SIZE_MAX = 100_000_000;
const SIZE_LEAST = 500;
/** Entries of one list: in all, and by one participant, so that nobody crowds out the others. */
const LISTED_MAX = 64;
const LISTED_EACH_MAX = 8;
/** Proposals that one request can carry out: each is compared with all of it. */
const FULFILLED_MAX = 4;
const PREFERRED_MAX = 64;
const PARTICIPANT_CHARS_MAX = 256;
const REASON_CHARS_MAX = 1_024;
const VIA_CHARS_MAX = 64;
const TEXT_CHARS_MAX = 4_096;
const NAME_CHARS = 8;
const SEEN_LEAST = 16_384;
/** The field of the params that says which tool, prompt or resource a method is for. */
const OPERANDS: Record<string, string> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "completion/complete": "ref",
};

/** Where it stands at a moment; what was sent is undone by neither a withdrawal nor the time. */
export function statusOf(proposal: Proposal, now: number): ProposalStatus {
  const deciding = decidingIn(proposal);
  if (deciding !== undefined) {
    if (deciding.answer === null) return "approved";
    return deciding.answer.failed ? "failed" : "fulfilled";
  }
  if (proposal.withdrawn !== null) return hasExpired(proposal, proposal.withdrawn.at) ? "expired" : "withdrawn";
  return hasExpired(proposal, now) ? "expired" : "open";
}

/** Whether a reviewer can still decide it. Rejections do not close it (§3.3.2). */
export function isOpen(proposal: Proposal, now: number): boolean {
  return statusOf(proposal, now) === "open";
}

/**
 * The request that decides the status: the first that succeeded, else the first in time, else a late one. A late request
 * decides nothing until it is answered with a result: then it did run.
 */
export function decidingIn({ fulfilments }: Proposal): Fulfilment | undefined {
  return fulfilments.find(({ answer }) => answer?.failed === false) ?? fulfilments.find(({ late }) => !late) ?? fulfilments.find(hasRun);
}

/** What every surface calls it: the first characters of its id. */
export function nameOf({ id }: { id: string }): string {
  return id.slice(0, NAME_CHARS);
}

/** The tool that it would call; null if it is something else. */
export function toolOf({ method, params }: Operation): string | null {
  return method === "tools/call" ? textIn(params.name) : null;
}

/** The arguments of a tool call, which should be an object but need not be; undefined if there are none. */
export function argumentsOf({ method, params }: Operation): Json | undefined {
  return method === "tools/call" ? own(params, "arguments") : undefined;
}

/** What a call carries besides its name and arguments: it is sent, too. */
export function besideCall(params: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(params).filter(([name]) => name !== "name" && name !== "arguments"));
}

/** All proposals of the space, fed with its envelopes in order; an envelope seen twice changes nothing. */
export class Proposals {
  readonly all = new Map<string, Proposal>();
  /** A rejection or a fulfilment -> the proposals it is about. */
  #about = new Map<string, Set<string>>();
  #seen = new Seen();
  #size = 0;

  get(id: string): Proposal | undefined {
    return this.all.get(id);
  }

  /** Those that a reviewer can still decide, oldest first. */
  open(now: number): Proposal[] {
    return [...this.all.values()].filter((proposal) => isOpen(proposal, now));
  }

  /** Take the next envelope; return the proposals it changed. */
  apply(envelope: Envelope, at: number): Proposal[] {
    const isProposal = envelope.kind === "mcp/proposal";
    if (!isProposal && (envelope.correlation_id ?? []).length === 0) return [];
    const handle = own(this.#handlers, envelope.kind);
    return handle === undefined || !this.#seen.isFirst(envelope) ? [] : handle(envelope, at);
  }

  #handlers: Record<string, (envelope: Envelope, at: number) => Proposal[]> = {
    "mcp/proposal": (envelope, at) => this.#propose(envelope, at),
    "mcp/reject": (envelope, at) => this.#named(envelope).filter((proposal) => this.#reject(proposal, envelope, at)),
    "mcp/withdraw": (envelope, at) => this.#named(envelope).filter((proposal) => withdraw(proposal, envelope, at)),
    "mcp/request": (envelope, at) => this.#request(envelope, at),
    "mcp/response": (envelope, at) => this.#concerned(envelope).filter((proposal) => this.#answer(proposal, envelope, at)),
    chat: (envelope) => [
      ...this.#concerned(envelope).filter((proposal) => explain(proposal, envelope)),
      ...this.#named(envelope).filter((proposal) => remark(proposal, envelope)),
    ],
  };

  /** Take what the gateway lists: proposals older than the history here, and what was missed of others. */
  adopt(listed: Listed[]): void {
    const all = listed.map(recalled);
    for (const told of all) {
      const known = this.all.get(told.id);
      if (known?.proposer === told.proposer) this.#complete(known, told);
    }
    this.#insert(all.filter(({ id }) => !this.all.has(id)));
  }

  /** Take the proposals of another book that are not in this one. */
  take(other: Proposals): void {
    this.#insert([...other.all.values()].filter((proposal) => !this.all.has(proposal.id)));
  }

  #complete(known: Proposal, told: Proposal): void {
    const missing = <Entry extends { id: string }>(mine: Entry[], theirs: Entry[]): Entry[] =>
      theirs.filter(({ id }) => !mine.some((entry) => entry.id === id));
    for (const sent of known.fulfilments) sent.answer ??= told.fulfilments.find(({ id }) => id === sent.id)?.answer ?? null;
    known.rejections.push(...missing(known.rejections, told.rejections));
    known.fulfilments.push(...missing(known.fulfilments, told.fulfilments));
    known.unrelated.push(...missing(known.unrelated, told.unrelated));
    known.withdrawn ??= told.withdrawn;
    this.#remember(known);
  }

  #insert(older: Proposal[]): void {
    if (older.length === 0) return;
    const known = [...this.all.values()];
    this.all.clear();
    for (const proposal of [...older, ...known].sort((one, other) => one.at - other.at)) this.all.set(proposal.id, proposal);
    for (const proposal of older) {
      this.#size += proposal.size;
      this.#remember(proposal);
    }
  }

  #propose(envelope: Envelope, at: number): Proposal[] {
    const asked = operationIn(envelope.payload);
    if (asked === null) return [];
    const known = this.all.get(envelope.id);
    if (known !== undefined) {
      // A TypeScript client restarts its ids at one; what is not settled is never replaced.
      if (!isSettled(known) || known.proposer !== envelope.from) return [];
      this.#drop(known);
    }
    const proposal = fresh(envelope, asked, at);
    this.all.set(envelope.id, proposal);
    this.#size += proposal.size;
    this.#shrink();
    return [proposal];
  }

  #reject(proposal: Proposal, envelope: Envelope, at: number): boolean {
    const { id, from: by } = envelope;
    if (!hasRoom(proposal.rejections, { id, by })) return false;
    const { reason, message } = envelope.payload ?? {};
    const words = { reason: wordsIn(reason, REASON_CHARS_MAX), message: wordsIn(message, TEXT_CHARS_MAX) };
    proposal.rejections.push({ id, by, at, ...words, explanations: [] });
    this.#remember(proposal);
    return true;
  }

  /** A request carries out those it names that propose the same, with whatever arguments; the others it only mentions. */
  #request(envelope: Envelope, at: number): Proposal[] {
    const named = this.#named(envelope).slice(0, FULFILLED_MAX);
    const request = named.length === 0 || !isRpc(envelope.payload, "request") ? null : operationIn(envelope.payload);
    if (request === null) return [];
    return named.filter((proposal) => {
      if (request.method.startsWith("notifications/") && request.method !== proposal.method) return false;
      const [sent, { fulfilments, unrelated }] = [requestOf(request, envelope, at), proposal];
      const isFulfilment = carriesOut(proposal, sent, request);
      if (!hasRoom(isFulfilment ? fulfilments : unrelated, sent)) return false;
      if (isListed(isFulfilment ? unrelated : fulfilments, sent.id)) return false;
      if (isFulfilment) fulfilments.push(compared(proposal, sent, request, envelope));
      else unrelated.push(sent);
      this.#remember(proposal);
      return true;
    });
  }

  /** Only a participant that the request was addressed to can answer it; its first answer counts. */
  #answer(proposal: Proposal, envelope: Envelope, at: number): boolean {
    const payload = envelope.payload ?? {};
    if (!isRpc(payload, "response") || (payload.result === undefined && payload.error === undefined)) return false;
    const answered = proposal.fulfilments.find(
      ({ id, to, answer }) =>
        envelope.correlation_id?.includes(id) === true && answer === null && (to.length === 0 || to.includes(envelope.from)),
    );
    if (answered === undefined) return false;
    answered.answer = { id: envelope.id, by: envelope.from, at, failed: hasFailed(payload), payload };
    const size = roughSize(payload);
    proposal.size += size;
    this.#size += size;
    this.#shrink();
    return true;
  }

  #named(envelope: Envelope): Proposal[] {
    return this.#known(envelope.correlation_id ?? []);
  }

  #concerned(envelope: Envelope): Proposal[] {
    return this.#known((envelope.correlation_id ?? []).flatMap((id) => [...(this.#about.get(id) ?? [])]));
  }

  #known(ids: string[]): Proposal[] {
    return [...new Set(ids)].map((id) => this.all.get(id)).filter((found) => found !== undefined);
  }

  #remember(proposal: Proposal): void {
    for (const { id } of [...proposal.rejections, ...proposal.fulfilments]) {
      this.#about.set(id, (this.#about.get(id) ?? new Set()).add(proposal.id));
    }
  }

  #shrink(): void {
    if (this.all.size <= KEPT_MAX + SLACK && this.#size <= SIZE_MAX) return;
    const whose = ({ proposer }: Proposal): string => proposer;
    const keeping = { countMax: KEPT_MAX, sizeMax: SIZE_MAX * 0.9, isSettled, whose };
    for (const proposal of surplus([...this.all.values()], keeping)) this.#drop(proposal);
  }

  #drop(proposal: Proposal): void {
    this.all.delete(proposal.id);
    this.#size -= proposal.size;
    for (const { id } of [...proposal.rejections, ...proposal.fulfilments]) {
      const about = this.#about.get(id);
      about?.delete(proposal.id);
      if (about?.size === 0) this.#about.delete(id);
    }
  }
}

/** Tells an envelope that is replayed from a new one, among the last 16,384 at least: by id, sender and time. */
class Seen {
  #now = new Set<string>();
  #before = new Set<string>();

  isFirst({ id, from, ts }: Envelope): boolean {
    const key = JSON.stringify([id, from, ts]);
    if (this.#now.has(key) || this.#before.has(key)) return false;
    this.#now.add(key);
    if (this.#now.size >= SEEN_LEAST) [this.#before, this.#now] = [this.#now, new Set()];
    return true;
  }
}

function hasExpired({ expiresAt }: Proposal, at: number): boolean {
  return expiresAt !== null && at >= expiresAt;
}

/** A JSON-RPC error says that it was not carried out. */
function hasRun({ answer }: Fulfilment): boolean {
  return answer !== null && answer.payload.error === undefined;
}

/** Whether a response is a JSON-RPC error, or a result that MCP marks as one. */
export function hasFailed(payload: JsonObject | undefined): boolean {
  return payload?.error !== undefined || objectIn(payload?.result).isError === true;
}

/** Whether nothing more is expected: withdrawn or answered. */
function isSettled(proposal: Proposal): boolean {
  return proposal.withdrawn !== null || (decidingIn(proposal)?.answer ?? null) !== null;
}

function fresh(envelope: Envelope, asked: Operation, at: number): Proposal {
  const payload = envelope.payload ?? {};
  return {
    id: envelope.id,
    proposer: envelope.from,
    to: [...new Set(envelope.to)],
    ...asked,
    context: envelope.context ?? null,
    at,
    why: wordsIn(payload.why, TEXT_CHARS_MAX),
    expiresAt: momentIn(payload.expires_at),
    ...targetingIn(payload.targeting),
    rejections: [],
    fulfilments: [],
    unrelated: [],
    withdrawn: null,
    remarks: [],
    size: SIZE_LEAST + roughSize(payload.params),
  };
}

/** Decision 004; anything malformed counts as not given. */
function targetingIn(value: Json | undefined): Pick<Proposal, "preferred" | "exclusive"> {
  const { preferred = [], exclusive = false } = objectIn(value);
  const isName = (item: Json): item is string => typeof item === "string" && item !== "" && item.length <= PARTICIPANT_CHARS_MAX;
  const isWell = Array.isArray(preferred) && preferred.length <= PREFERRED_MAX && preferred.every(isName) && typeof exclusive === "boolean";
  return isWell ? { preferred: listIn(preferred).filter(isName), exclusive: exclusive && preferred.length > 0 } : { preferred: [], exclusive: false };
}

function recalled(listed: Listed): Proposal {
  return {
    id: listed.id,
    proposer: listed.proposer,
    to: listed.to,
    method: listed.method,
    params: listed.params,
    context: listed.context,
    at: momentIn(listed.at) ?? 0,
    why: listed.why,
    expiresAt: momentIn(listed.expires_at ?? undefined),
    preferred: listed.preferred,
    exclusive: listed.exclusive,
    rejections: listed.rejections.map((rejection) => ({ ...rejection, at: momentIn(rejection.at) ?? 0 })),
    fulfilments: listed.fulfilments.map((sent) => ({
      ...requestListed(sent),
      edited: sent.edited,
      changes: sent.differences.map(({ path, old, new: now }) => ({ path: path.replace(/^\$\.?/, ""), old, new: now })),
      late: sent.late,
      via: sent.via,
      answer: answerListed(sent),
    })),
    unrelated: listed.unrelated.map(requestListed),
    withdrawn: listed.withdrawn === null ? null : { ...listed.withdrawn, at: momentIn(listed.withdrawn.at) ?? 0 },
    remarks: [],
    size: SIZE_LEAST + roughSize(listed.params),
  };
}

function requestListed({ id, by, at, target, method, params = {} }: ListedFulfilment): NamingRequest {
  const to = target === null ? [] : typeof target === "string" ? [target] : target;
  return { id, by, at: momentIn(at) ?? 0, to, method, tool: toolOf({ method, params }) };
}

function answerListed({ response }: ListedFulfilment): Answer | null {
  if (response === null) return null;
  const { id, by, at, result, error } = response;
  const payload: JsonObject = { ...(result === undefined ? {} : { result }), ...(error === undefined ? {} : { error }) };
  return { id, by, at: momentIn(at) ?? 0, failed: hasFailed(payload), payload };
}

/** The method and params of a request or a proposal; null if the payload is malformed. */
function operationIn(payload: JsonObject | undefined): Operation | null {
  const { method, params = {} } = payload ?? {};
  return typeof method === "string" && isObject(params) ? { method, params } : null;
}

/** Whether the JSON-RPC fields of a payload are well-formed. */
function isRpc(payload: JsonObject | undefined, of: "request" | "response"): boolean {
  const { jsonrpc = "2.0", id = 0, error } = payload ?? {};
  const isId = typeof id === "string" || isInteger(id) || (of === "response" && id === null);
  const isError = error === undefined || (isObject(error) && isInteger(error.code) && typeof error.message === "string");
  return jsonrpc === "2.0" && isId && (of === "request" || isError);
}

function isInteger(value: Json | undefined): boolean {
  return Number.isInteger(value) || (value !== undefined && /^-?\d+$/.test(exactDigits(value) ?? ""));
}

function requestOf(request: Operation, { id, from: by, to }: Envelope, at: number): NamingRequest {
  return { id, by, at, to: [...new Set(to)], method: request.method, tool: toolOf(request) };
}

/** Whether a request asks for the same method and tool, of participants that the proposal names if it names any. */
function carriesOut(proposal: Proposal, { to }: NamingRequest, request: Operation): boolean {
  const isMeant = proposal.to.length === 0 || (to.length > 0 && to.every((who) => proposal.to.includes(who)));
  return isMeant && request.method === proposal.method && same(operandOf(request), operandOf(proposal));
}

function operandOf({ method, params }: Operation): Json {
  const field = own(OPERANDS, method);
  return field === undefined ? null : (own(params, field) ?? null);
}

/** If the proposal names no one, naming someone does not change it. */
function compared(proposal: Proposal, sent: NamingRequest, request: Operation, envelope: Envelope): Fulfilment {
  const was = { method: proposal.method, params: proposal.params };
  const changes = differences(was, { method: request.method, params: request.params });
  const isSameTarget = proposal.to.length === 0 || proposal.to.length === sent.to.length;
  if (!isSameTarget) changes.unshift({ path: "to", old: proposal.to, new: sent.to });
  const late = proposal.withdrawn !== null || hasExpired(proposal, sent.at);
  return { ...sent, edited: changes.length > 0, changes, late, via: wordsIn(envelope.payload?.via, VIA_CHARS_MAX), answer: null };
}

/** Whether one more entry may be listed and is not listed already. */
function hasRoom(listed: readonly { id: string; by: string }[], { id, by }: { id: string; by: string }): boolean {
  if (listed.length >= LISTED_MAX || isListed(listed, id)) return false;
  return listed.filter((entry) => entry.by === by).length < LISTED_EACH_MAX;
}

function isListed(listed: readonly { id: string }[], id: string): boolean {
  return listed.some((entry) => entry.id === id);
}

/** Text, cut where it is too long; null for anything else and for empty text. */
function wordsIn(value: Json | undefined, charsMax: number): string | null {
  const text = textIn(value);
  return text === null || text === "" ? null : cut(text, charsMax);
}

function withdraw(proposal: Proposal, envelope: Envelope, at: number): boolean {
  if (envelope.from !== proposal.proposer || isSettled(proposal)) return false;
  proposal.withdrawn = { id: envelope.id, at, reason: wordsIn(envelope.payload?.reason, REASON_CHARS_MAX) };
  return true;
}

function explain(proposal: Proposal, envelope: Envelope): boolean {
  const about = proposal.rejections.find(({ id, by }) => envelope.correlation_id?.includes(id) === true && by === envelope.from);
  const text = chatIn(envelope);
  if (about === undefined || text === null || about.explanations.length >= LISTED_EACH_MAX) return false;
  if (isListed(about.explanations, envelope.id)) return false;
  about.explanations.push({ id: envelope.id, text });
  return true;
}

function remark(proposal: Proposal, envelope: Envelope): boolean {
  const text = chatIn(envelope);
  if (text === null || !hasRoom(proposal.remarks, { id: envelope.id, by: envelope.from })) return false;
  proposal.remarks.push({ id: envelope.id, by: envelope.from, text });
  return true;
}

function chatIn({ payload }: Envelope): string | null {
  const { text, format = "plain" } = payload ?? {};
  return typeof text === "string" && (format === "plain" || format === "markdown") ? cut(text, TEXT_CHARS_MAX) : null;
}
