/** PURE. Envelopes in one line: what somebody did, in words. */

import type { Envelope } from "../../envelope";
import { type Json, type JsonObject, exactDigits, isObject, own } from "../../json";
import { listIn, numberIn, objectIn, roughSize, textIn } from "../../space/fields";
import { type Operation, besideCall, hasFailed, toolOf } from "../../space/proposals";
import { sayOne } from "../../space/words";
import { brief, bytes, count, counted, cut, isPlain, lasting, named, visible } from "../../text";

/** A request or proposal: the verb's object, `write_file` or `resources/read`. */
export function operationOf(payload: JsonObject | undefined): string {
  const method = textIn(payload?.method) ?? "(no method)";
  const params = objectIn(payload?.params);
  const name = textIn(params.name) ?? textIn(params.uri);
  if (method === "tools/call") return visible(name ?? method, 120);
  return visible(name === null ? method : `${method} ${name}`, 160);
}

/** The params of a call in one line. */
export interface CallLine {
  text: string;
  /** Whether nothing of them is left out, cut, or shown as anything but what it is. */
  isWhole: boolean;
}

/** Of the title of a card: the tool's name or the method, and those who are to do it. */
export const TITLE_MAX = 120;
export const TARGETS_MAX = 5;
const LINE_MAX = 160;
const CARD_LINE_MAX = 240;
const NAME_MAX = 40;
const VALUE_MAX = 60;
/** Of rough parts, more than fit into any line. */
const PARTS_MAX = 40;
/** As `roughSize` has it: beyond this, a line cannot hold it. */
const LINE_SIZE_MAX = 4_000;
const PLAIN_NAME = /^[\w$.@/-]{1,40}$/;
const NEEDS_QUOTES = /^$|^\s|\s$|^(?:true|false|null|-?\d[\d.eE+-]*)$|^[[{“]|["\n\t]|[,;:] /;

/** With what a call is made: all of it where it is short, and the beginning of each part where it is not. */
export function callLine(payload: JsonObject | undefined, most = LINE_MAX): CallLine {
  const params = objectIn(payload?.params);
  const exact = roughSize(params, LINE_SIZE_MAX) > LINE_SIZE_MAX ? null : lineOfParts(payload, params, exactPart, Number.POSITIVE_INFINITY);
  if (exact !== null && exact.length <= most) return { text: exact, isWhole: true };
  return { text: cut(lineOfParts(payload, params, roughPart, PARTS_MAX) ?? "", most), isWhole: false };
}

/** The same, for who does not mind that something is left out. */
export function argumentsLine(payload: JsonObject | undefined, most = LINE_MAX): string {
  return callLine(payload, most).text;
}

/** The line of a card that is closed: whole only where the rest of what would be sent stands beside it. */
export function cardLine(proposal: Operation & { to: readonly string[] }): CallLine {
  const { text, isWhole } = callLine({ method: proposal.method, params: proposal.params }, CARD_LINE_MAX);
  const what = toolOf(proposal) ?? proposal.method;
  return { text, isWhole: isWhole && what.length <= TITLE_MAX && isPlain(what) && proposal.to.length <= TARGETS_MAX };
}

/** A field in one line, or, without a name, a value that stands for all; null where it is no line. */
type Part = (name: string | null, value: Json) => string | null;

/** `path: a.txt, mode: 7; with _meta: {"progressToken":"mew"}` */
function lineOfParts(payload: JsonObject | undefined, params: JsonObject, part: Part, most: number): string | null {
  const isCall = textIn(payload?.method) === "tools/call" && typeof params.name === "string";
  const given = isCall ? own(params, "arguments") : params;
  const all = (values: JsonObject): (string | null)[] =>
    Object.entries(values).slice(0, most).map(([name, value]) => part(name, value));
  const parts = isObject(given) ? all(given) : given === undefined ? [] : [part(null, given)];
  const beside = isCall ? all(besideCall(params)) : [];
  if (parts.includes(null) || beside.includes(null)) return null;
  return [parts.join(", "), ...(beside.length === 0 ? [] : [`with ${beside.join(", ")}`])].filter((text) => text !== "").join("; ");
}

/** As it is, in quotes where it could be taken for anything else. */
function exactPart(name: string | null, value: Json): string | null {
  if (name === null) return asWritten(value);
  const [shownName, shown] = [PLAIN_NAME.test(name) ? name : asWritten(name), exactly(value)];
  return shownName === null || shown === null ? null : `${shownName}: ${shown}`;
}

function roughPart(name: string | null, value: Json): string {
  const exact = roughSize(value, LINE_SIZE_MAX) > LINE_SIZE_MAX ? null : name === null ? asWritten(value) : exactly(value);
  const shown = exact !== null && exact.length <= VALUE_MAX ? exact : oneLine(value, VALUE_MAX);
  return name === null ? shown : `${visible(name, NAME_MAX)}: ${shown}`;
}

function exactly(value: Json): string | null {
  return typeof value === "string" && !NEEDS_QUOTES.test(value) && isPlain(value) ? value : asWritten(value);
}

function asWritten(value: Json): string | null {
  const text = JSON.stringify(value);
  return isPlain(text) ? text : null;
}

function oneLine(value: Json | undefined, most = 120): string {
  if (value === undefined) return "";
  if (typeof value === "string") return brief(value.trim(), most);
  if (typeof value !== "object" || value === null) return String(value);
  const digits = exactDigits(value);
  if (digits !== null) return brief(digits, most);
  if (Array.isArray(value)) return `[${count(value.length)}]`;
  return cut(`{${Object.keys(value).slice(0, 6).map((name) => visible(name, 24)).join(", ")}}`, most);
}

const ANSWERS: Record<string, string> = { accept: "accepts", decline: "declines", cancel: "dismisses it" };

const METHOD_NOT_FOUND = -32601;

/** Whether an answer is shown as a failure; that an optional method is not offered, which hosts probe for, is none. */
export function isFailure(payload: JsonObject | undefined): boolean {
  return hasFailed(payload) && numberIn(objectIn(payload?.error).code) !== METHOD_NOT_FOUND;
}

/** What an answer says: its text where it has some. */
export function answerText(payload: JsonObject | undefined): string {
  const error = objectIn(payload?.error);
  if (payload?.error !== undefined) return textIn(error.message) ?? "unknown error";
  const result = payload?.result;
  const content = listIn(objectIn(result).content);
  const texts = content.map((item) => textIn(objectIn(item).text)).filter((text) => text !== null);
  if (texts.length > 0) return texts.join("\n");
  const tools = listIn(objectIn(result).tools);
  if (tools.length > 0) return `${counted(tools.length, "tool")}: ${tools.map((tool) => textIn(objectIn(tool).name) ?? "?").join(", ")}`;
  const answered = own(ANSWERS, textIn(objectIn(result).action) ?? "");
  if (answered !== undefined) return `${answered}${objectIn(result).content === undefined ? "" : `: ${JSON.stringify(objectIn(result).content)}`}`;
  const bare = objectIn(result).structuredContent ?? result;
  return bare === undefined ? "no content" : (JSON.stringify(bare) ?? "");
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
const who = (value: Json | undefined): string => visible(textIn(value) ?? "someone", 80);
const whom = (envelope: Envelope): string => envelope.to?.map((id) => visible(id, 60)).slice(0, 4).join(", ") || "everyone";
const rights = (value: Json | undefined): string =>
  listIn(value).slice(0, 3).map((one) => sayOne(typeof one === "string" ? { kind: one } : objectIn(one)).words.toLowerCase()).join("; ") || "unknown capabilities";

const said = (value: Json | undefined): string => visible((textIn(value) ?? "").replaceAll("`", ""), 300);
const VERDICTS: Record<string, string> = { fulfil: "decides alone", ask: "leaves it to a person", audit: "has a person check its rule", shadow: "would decide alone" };

const LINES: Record<string, Say> = {
  "mcp/reject": (payload, _envelope, about) => {
    const what = about === undefined ? "a proposal" : `${named(about.proposer, 60)}'s proposal of ${whatOf(about)}`;
    const message = textIn(payload.message) ?? "";
    return `rejects ${what}${because(payload)}${message === "" ? "" : ` “${visible(message, 300)}”`}`;
  },
  "mcp/withdraw": (payload, _envelope, about) =>
    `withdraws its proposal${about === undefined ? "" : ` of ${whatOf(about)}`}${because(payload)}`,
  "capability/grant": (payload) => `allows ${who(payload.recipient)} to ${rights(payload.capabilities)}${ending(payload)}${because(payload)}`,
  "capability/revoke": (payload) =>
    payload.grant_id === undefined
      ? `no longer allows ${who(payload.recipient)} to ${rights(payload.capabilities)}${because(payload)}`
      : `revokes a grant of ${who(payload.recipient)}${because(payload)}`,
  "capability/grant-ack": (payload) => `acknowledges a grant${payload.status === undefined ? "" : ` (${visible(textIn(payload.status) ?? "", 40)})`}`,
  "space/invite": (payload) => `invites ${who(payload.participant_id)}${because(payload)}`,
  "space/kick": (payload) => `removes ${who(payload.participant_id)}${because(payload)}`,
  "participant/pause": (payload, envelope) => `pauses ${whom(envelope)}${forSeconds(payload.timeout_seconds)}${because(payload)}`,
  "participant/resume": (payload, envelope) => `resumes ${whom(envelope)}${because(payload)}`,
  "participant/request-status": (_payload, envelope) => `requests the status of ${whom(envelope)}`,
  "participant/status": (payload) => statusLine(payload),
  "participant/forget": (payload, envelope) =>
    `tells ${whom(envelope)} to forget its ${who(payload.direction)}${payload.entries === undefined ? "" : ` ${oneLine(payload.entries, 20)}`} messages`,
  "participant/compact": (payload, envelope) => `tells ${whom(envelope)} to compact its context${because(payload)}`,
  "participant/compact-done": (payload) => (payload.skipped === true ? "had nothing to compact" : `compacted its context${freed(payload)}`) + because(payload),
  "participant/clear": (_payload, envelope) => `tells ${whom(envelope)} to clear its context`,
  "participant/restart": (_payload, envelope) => `tells ${whom(envelope)} to restart`,
  "participant/shutdown": (_payload, envelope) => `tells ${whom(envelope)} to shut down`,
  "chat/acknowledge": (payload) => `acknowledges a chat (${visible(textIn(payload.status) ?? "received", 40)})`,
  "chat/cancel": (payload) => `cancels a chat${because(payload)}`,
  "reasoning/thought": (payload) => `thinks: ${visible(textIn(payload.message) ?? "", 300)}`,
  "reasoning/conclusion": (payload) => `concludes: ${visible(textIn(payload.message) ?? "", 300)}`,
  "reasoning/cancel": (payload) => `cancels a reasoning${because(payload)}`,
  "stream/request": (payload) => `requests a stream${payload.description === undefined ? "" : `: ${oneLine(payload.description)}`}`,
  "stream/close": (payload) => `closes a stream${because(payload)}`,
  "stream/ack": (payload) => `received ${bytes(numberIn(payload.received) ?? 0)} of a stream`,
  "stream/grant-write": (payload) => `allows ${who(payload.participant_id)} to write to a stream`,
  "stream/revoke-write": (payload) => `no longer allows ${who(payload.participant_id)} to write to a stream`,
  "stream/write-granted": (payload) => `${who(payload.participant_id)} may write to a stream`,
  "stream/write-revoked": (payload) => `${who(payload.participant_id)} may no longer write to a stream`,
  "stream/ownership-transferred": (payload) => `${who(payload.new_owner)} now owns a stream of ${who(payload.previous_owner)}`,
  "autopilot/decision": (payload) => `${own(VERDICTS, textIn(payload.verdict) ?? "") ?? "decides"}: ${said(payload.why)}`,
  "autopilot/rule": (payload) => {
    const rule = `rule ${who(payload.rule)}`;
    return textIn(payload.refused) === null ? `${rule} is ${said(payload.state)}: ${said(payload.sentence)}` : `does not activate ${rule}: ${said(payload.refused)}`;
  },
  "autopilot/summary": (payload) => `reports its figures, mode ${said(payload.mode)}`,
  "autopilot/ratify": (payload) => (payload.rule === undefined ? "activates a rule for calls like this proposal" : `activates rule ${who(payload.rule)}`),
  "autopilot/revoke": (payload) => `${payload.pause === true ? "pauses" : "revokes"} rule ${who(payload.rule)}`,
  "autopilot/object": () => "objects: this should have been asked",
  "autopilot/mode": (payload) => `sets the autopilot to mode ${said(payload.mode)}`,
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
  return /^(system\/presence|participant\/|capability\/grant-ack|chat\/|stream\/|autopilot\/summary)/.test(kind);
}

function statusLine(payload: JsonObject): string {
  const parts: string[] = [];
  const status = textIn(payload.status);
  const [tokens, most] = [numberIn(payload.tokens), numberIn(payload.max_tokens)];
  if (status !== null) parts.push(visible(status, 80));
  if (tokens !== null) parts.push(most === null ? counted(tokens, "token") : `${count(tokens)} of ${counted(most, "token")}`);
  const messages = numberIn(payload.messages_in_context);
  if (messages !== null) parts.push(`${counted(messages, "message")} in context`);
  const latency = numberIn(payload.latency_ms);
  if (latency !== null) parts.push(lasting(latency));
  return `reports its status: ${parts.join(", ") || Object.keys(payload).slice(0, 5).join(", ")}`;
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
