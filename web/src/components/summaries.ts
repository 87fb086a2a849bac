/** PURE. Envelopes in one line: what somebody did, in words. */

import type { Envelope } from "../envelope";
import { type Json, type JsonObject, own } from "../json";
import { listIn, numberIn, objectIn, textIn } from "../space/fields";
import { sayOne } from "../space/words";
import { brief, bytes, count, counted, cut, lasting, named, visible } from "../text";

/** A request or proposal: the verb's object, `write_file` or `resources/read`. */
export function operationOf(payload: JsonObject | undefined): string {
  const method = textIn(payload?.method) ?? "(nothing)";
  const params = objectIn(payload?.params);
  const name = textIn(params.name) ?? textIn(params.uri);
  if (method === "tools/call") return visible(name ?? method, 120);
  return visible(name === null ? method : `${method} ${name}`, 160);
}

/** Arguments in one line, each cut short. */
export function argumentsLine(payload: JsonObject | undefined, most = 160): string {
  const params = objectIn(payload?.params);
  const values = textIn(payload?.method) === "tools/call" ? objectIn(params.arguments) : params;
  const parts: string[] = [];
  let length = 0;
  for (const [name, value] of Object.entries(values)) {
    if (name === "_meta") continue;
    const part = `${visible(name, 40)}: ${oneLine(value, 60)}`;
    parts.push(part);
    length += part.length;
    if (length > most) break;
  }
  return cut(parts.join(", "), most);
}

function oneLine(value: Json | undefined, most = 120): string {
  if (value === undefined) return "";
  if (typeof value === "string") return brief(value.trim(), most);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${count(value.length)}]`;
  return cut(`{${Object.keys(value).slice(0, 6).map((name) => visible(name, 24)).join(", ")}}`, most);
}

const ANSWERS: Record<string, string> = { accept: "accepts", decline: "declines", cancel: "leaves it without a decision" };

/** What an answer says: its text where it has some. */
export function answerText(payload: JsonObject | undefined): string {
  const error = objectIn(payload?.error);
  if (payload?.error !== undefined) return textIn(error.message) ?? "an error";
  const result = payload?.result;
  const content = listIn(objectIn(result).content);
  const texts = content.map((item) => textIn(objectIn(item).text)).filter((text) => text !== null);
  if (texts.length > 0) return texts.join("\n");
  const tools = listIn(objectIn(result).tools);
  if (tools.length > 0) return `${counted(tools.length, "tool")}: ${tools.map((tool) => textIn(objectIn(tool).name) ?? "?").join(", ")}`;
  const answered = own(ANSWERS, textIn(objectIn(result).action) ?? "");
  if (answered !== undefined) return `${answered}${objectIn(result).content === undefined ? "" : `: ${JSON.stringify(objectIn(result).content)}`}`;
  const bare = objectIn(result).structuredContent ?? result;
  return bare === undefined ? "nothing" : (JSON.stringify(bare) ?? "");
}

/** What a decision is about, where that is known. */
interface About {
  proposer: string;
  method: string;
  params: JsonObject;
}

type Say = (payload: JsonObject, envelope: Envelope, about: About | undefined) => string;

const because = (payload: JsonObject): string => {
  const reason = textIn(payload.reason);
  return reason === null || reason === "" ? "" : `: ${reasonOf(reason, 160)}`;
};
const who = (value: Json | undefined): string => visible(textIn(value) ?? "somebody", 80);
const whom = (envelope: Envelope): string => envelope.to?.map((id) => visible(id, 60)).slice(0, 4).join(", ") || "everyone";
const rights = (value: Json | undefined): string =>
  listIn(value).slice(0, 3).map((one) => sayOne(typeof one === "string" ? { kind: one } : objectIn(one)).words.toLowerCase()).join("; ") || "something";

const LINES: Record<string, Say> = {
  "mcp/reject": (payload, _envelope, about) =>
    about === undefined
      ? `rejects a proposal${because(payload)}`
      : `rejects ${named(about.proposer, 60)}'s proposal of ${whatOf(about)}${because(payload)}`,
  "mcp/withdraw": (payload, _envelope, about) =>
    `takes its proposal${about === undefined ? "" : ` of ${whatOf(about)}`} back${because(payload)}`,
  "capability/grant": (payload) => `lets ${who(payload.recipient)} ${rights(payload.capabilities)}${ending(payload)}${because(payload)}`,
  "capability/revoke": (payload) =>
    payload.grant_id === undefined
      ? `no longer lets ${who(payload.recipient)} ${rights(payload.capabilities)}${because(payload)}`
      : `takes back a grant from ${who(payload.recipient)}${because(payload)}`,
  "capability/grant-ack": (payload) => `acknowledges a grant${payload.status === undefined ? "" : ` (${visible(textIn(payload.status) ?? "", 40)})`}`,
  "space/invite": (payload) => `invites ${who(payload.participant_id)}${because(payload)}`,
  "space/kick": (payload) => `removes ${who(payload.participant_id)}${because(payload)}`,
  "participant/pause": (payload, envelope) => `pauses ${whom(envelope)}${forSeconds(payload.timeout_seconds)}${because(payload)}`,
  "participant/resume": (payload, envelope) => `lets ${whom(envelope)} go on${because(payload)}`,
  "participant/request-status": (_payload, envelope) => `asks ${whom(envelope)} how it is doing`,
  "participant/status": (payload) => statusLine(payload),
  "participant/forget": (payload, envelope) =>
    `tells ${whom(envelope)} to forget its ${who(payload.direction)}${payload.entries === undefined ? "" : ` ${oneLine(payload.entries, 20)}`} messages`,
  "participant/compact": (payload, envelope) => `tells ${whom(envelope)} to compact its memory${because(payload)}`,
  "participant/compact-done": (payload) => (payload.skipped === true ? "had nothing to compact" : `has compacted its memory${freed(payload)}`) + because(payload),
  "participant/clear": (_payload, envelope) => `tells ${whom(envelope)} to forget everything`,
  "participant/restart": (_payload, envelope) => `tells ${whom(envelope)} to start over`,
  "participant/shutdown": (_payload, envelope) => `tells ${whom(envelope)} to stop`,
  "chat/acknowledge": (payload) => `acknowledges a chat (${visible(textIn(payload.status) ?? "received", 40)})`,
  "chat/cancel": (payload) => `cancels a chat${because(payload)}`,
  "reasoning/thought": (payload) => `thinks: ${visible(textIn(payload.message) ?? "", 300)}`,
  "reasoning/conclusion": (payload) => `concludes: ${visible(textIn(payload.message) ?? "", 300)}`,
  "reasoning/cancel": (payload) => `stops a reasoning${because(payload)}`,
  "stream/request": (payload) => `asks for a stream${payload.description === undefined ? "" : `: ${oneLine(payload.description)}`}`,
  "stream/close": (payload) => `closes a stream${because(payload)}`,
  "stream/ack": (payload) => `has received ${bytes(numberIn(payload.received) ?? 0)} of a stream`,
  "stream/grant-write": (payload) => `lets ${who(payload.participant_id)} write to a stream`,
  "stream/revoke-write": (payload) => `no longer lets ${who(payload.participant_id)} write to a stream`,
  "stream/write-granted": (payload) => `${who(payload.participant_id)} may write to a stream`,
  "stream/write-revoked": (payload) => `${who(payload.participant_id)} may no longer write to a stream`,
  "stream/ownership-transferred": (payload) => `${who(payload.new_owner)} has a stream of ${who(payload.previous_owner)} now`,
  "system/presence": (payload) => `${who(objectIn(payload.participant).id)} ${payload.event === "join" ? "joined" : "left"}`,
  "system/error": (payload) => {
    const refused = textIn(payload.participant) === null ? "refused" : `refused ${who(payload.participant)}`;
    return `${refused}: ${visible(textIn(payload.message) ?? textIn(payload.error) ?? "", 300)}`;
  },
};

/** Why, in words: the reasons of §3.3.3 are written for programs. */
export function reasonOf(reason: string, most = 120): string {
  return visible(/^[a-z]+(_[a-z]+)+$/.test(reason) ? reason.replaceAll("_", " ") : reason, most);
}

/** One line for any envelope; a kind that nobody knows is named, with what it holds. */
export function lineOf(envelope: Envelope, about?: About): string {
  const payload = envelope.payload ?? {};
  const say = own(LINES, envelope.kind);
  if (say !== undefined) return say(payload, envelope, about);
  return `sends ${visible(envelope.kind, 80)} ${oneLine(payload, 160)}`;
}

/** Of little weight beside the rest: one quiet line. */
export function isQuiet(kind: string): boolean {
  return /^(system\/presence|participant\/|capability\/grant-ack|chat\/|stream\/)/.test(kind);
}

function statusLine(payload: JsonObject): string {
  const parts: string[] = [];
  const status = textIn(payload.status);
  const [tokens, most] = [numberIn(payload.tokens), numberIn(payload.max_tokens)];
  if (status !== null) parts.push(visible(status, 80));
  if (tokens !== null) parts.push(most === null ? counted(tokens, "token") : `${count(tokens)} of ${counted(most, "token")}`);
  const messages = numberIn(payload.messages_in_context);
  if (messages !== null) parts.push(`${counted(messages, "message")} in mind`);
  const latency = numberIn(payload.latency_ms);
  if (latency !== null) parts.push(lasting(latency));
  return `says how it is doing: ${parts.join(", ") || Object.keys(payload).slice(0, 5).join(", ")}`;
}

/** `write_file (path: a.txt)` */
function whatOf(about: About): string {
  const payload = { method: about.method, params: about.params };
  const values = argumentsLine(payload, 60);
  return values === "" ? operationOf(payload) : `${operationOf(payload)} (${values})`;
}

function forSeconds(value: Json | undefined): string {
  const seconds = numberIn(value);
  return seconds === null ? "" : ` for ${lasting(seconds * 1000)}`;
}

function ending(payload: JsonObject): string {
  const seconds = numberIn(payload.ttl_seconds);
  if (seconds !== null) return ` for ${lasting(seconds * 1000)}`;
  const until = textIn(payload.expires_at);
  return until === null ? "" : ` until ${visible(until, 40)}`;
}

function freed(payload: JsonObject): string {
  const tokens = numberIn(payload.freed_tokens);
  return tokens === null ? "" : `, ${counted(tokens, "token")} freed`;
}
