/** What the page asks of the gateway over HTTP. */

import { type Envelope, isEnvelope } from "./envelope";
import { type Json, type JsonObject, isObject, parseJson } from "./json";

/** A space and the token that opens it. */
export interface Place {
  space: string;
  token: string;
}

/** Why something was not to be had: `code` is stable, `message` a sentence for people, `status` 0 without an answer. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryAfterS: number | undefined;

  constructor(status: number, code: string, message: string, retryAfterS?: number) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterS = retryAfterS;
  }

  /** Whether the same token will be turned away again, however often it is tried. */
  get isFinal(): boolean {
    return FINAL.has(this.code);
  }
}

export interface SpaceShown {
  id: string;
  name: string;
  description: string;
  /** Who one is there, with this token. */
  participant: string;
}

export interface Participant {
  id: string;
  connected: boolean;
  connections: number;
  capabilities: JsonObject[];
  /** `until` null: until somebody resumes. */
  paused: { by: string; envelope_id: string; until: string | null } | null;
  shut_down: boolean;
  streams: string[];
}

/** A request that names a proposal. `params` are missing if they were too long. */
export interface Fulfilment {
  id: string;
  at: string;
  by: string;
  target: string | string[] | null;
  method: string;
  params?: JsonObject;
  edited: boolean;
  differences: { path: string; old?: Json; new?: Json }[];
  via: string | null;
  late: boolean;
  response: { id: string; at: string; by: string; result?: Json; error?: JsonObject } | null;
}

export interface Proposal {
  id: string;
  proposer: string;
  at: string;
  status: "open" | "approved" | "fulfilled" | "failed" | "withdrawn" | "expired";
  to: string[];
  method: string;
  params: JsonObject;
  context: string | null;
  why: string | null;
  expires_at: string | null;
  preferred: string[];
  exclusive: boolean;
  rejections: {
    id: string;
    at: string;
    by: string;
    reason: string | null;
    message: string | null;
    explanations: { id: string; text: string }[];
  }[];
  fulfilments: Fulfilment[];
  unrelated: Fulfilment[];
  withdrawn: { id: string; at: string; reason: string | null } | null;
}

/** `next` goes into `before`; null: there are no older ones. Not `complete`: some may be gone. */
export interface ProposalsPage {
  proposals: Proposal[];
  next: string | null;
  complete: boolean;
}

/** `next` goes into `after` (`before` with `order: "desc"`); null: there are no more. A page may be empty and have one. */
export interface EnvelopesPage {
  envelopes: Envelope[];
  next: string | null;
  complete: boolean;
}

export interface HistoryQuery {
  after?: string;
  before?: string;
  since?: string;
  until?: string;
  kind?: string;
  participant?: string;
  /** All that hangs together with this envelope, in both directions. */
  correlation?: string;
  order?: "asc" | "desc";
  limit?: number;
}

/** What a link is exchanged for: a token of this browser's own. */
export interface Session extends Place {
  participant: string;
  expires: string;
}

const ANSWER_MS = 20_000;
/** By code, not by status: a proxy whose gateway is away answers with any status, and with no code of ours. */
const FINAL = new Set(["no_token", "bad_token", "kicked", "no_such_space", "origin_refused"]);

/** What was shown in the space, as far as it is kept: oldest first, or newest first with `order: "desc"`. */
export async function history(place: Place, query: HistoryQuery = {}): Promise<EnvelopesPage> {
  const page = await ask<EnvelopesPage>(place.token, `${spacePath(place)}/envelopes`, { query: { ...query } });
  return { ...page, envelopes: page.envelopes.filter((item) => isEnvelope(item as Json & Envelope)) };
}

/** Everyone who belongs to the space, those connected first. */
export async function participants(place: Place): Promise<Participant[]> {
  return (await ask<{ participants: Participant[] }>(place.token, `${spacePath(place)}/participants`)).participants;
}

/** The newest proposals, oldest of them first, and what became of each. */
export async function proposals(
  place: Place,
  query: { status?: Proposal["status"]; before?: string; limit?: number } = {},
): Promise<ProposalsPage> {
  return ask<ProposalsPage>(place.token, `${spacePath(place)}/proposals`, { query: { ...query } });
}

/** The spaces that a token opens. */
export async function spaces(token: string): Promise<SpaceShown[]> {
  return (await ask<{ spaces: SpaceShown[] }>(token, "spaces")).spaces;
}

/** The code of a link that signs in whoever holds the token; it works once, until `expires`. */
export async function makeLink(place: Place, lifetimeS: number): Promise<{ code: string; expires: string }> {
  return ask(place.token, `${spacePath(place)}/links`, { query: { lifetime_s: lifetimeS }, body: {} });
}

/** Exchange the code of a link, which works once, for a token. */
export async function openSession(code: string): Promise<Session> {
  return ask<Session>(null, "sessions", { body: { code } });
}

/** Make the token of a session worthless. Other tokens are not touched: the gateway says so with a problem. */
export async function endSession(token: string): Promise<void> {
  await ask<JsonObject>(token, "sessions/end", { body: {} });
}

function spacePath(place: Place): string {
  return `spaces/${encodeURIComponent(place.space)}`;
}

interface Asking {
  query?: Record<string, string | number | undefined>;
  body?: JsonObject;
}

/** The shapes of answers are the gateway's promise (`/openapi.json`); what participants wrote in them is not. */
async function ask<Answer>(token: string | null, path: string, asking: Asking = {}): Promise<Answer> {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(asking.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const headers: Record<string, string> = {};
  if (token !== null) headers["Authorization"] = `Bearer ${token}`;
  if (asking.body !== undefined) headers["Content-Type"] = "application/json";
  let status = 0;
  let text = "";
  try {
    const response = await fetch(url, {
      method: asking.body === undefined ? "GET" : "POST",
      headers,
      body: asking.body === undefined ? null : JSON.stringify(asking.body),
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    status = response.status;
    text = await response.text();
  } catch {
    throw new Problem(0, "unreachable", "the gateway cannot be reached");
  }
  const answer = parsed(text);
  if (status < 200 || status > 299) throw problemIn(status, answer);
  if (answer === null) throw new Problem(status, "unreadable", "the gateway sent an unreadable response");
  return answer as JsonObject & Answer;
}

function parsed(text: string): JsonObject | null {
  try {
    const answer = parseJson(text);
    return isObject(answer) ? answer : null;
  } catch {
    return null;
  }
}

function problemIn(status: number, answer: JsonObject | null): Problem {
  const { error, detail, retry_after_s: retry } = answer ?? {};
  return new Problem(
    status,
    typeof error === "string" ? error : "unreadable",
    typeof detail === "string" ? detail : `the gateway responded with status ${status}`,
    typeof retry === "number" ? retry : undefined,
  );
}
