/** PURE. Capabilities in words that a person understands. */

import { type Json, type JsonObject, isObject, own } from "../json";
import { objectIn, textIn } from "./fields";

/** How far one goes: for the colour, and for what comes first. */
export type Weight = "all" | "act" | "control" | "propose" | "talk";

export interface Said {
  weight: Weight;
  words: string;
  /** What it does not reach, or whom alone. */
  limits: string[];
}

const KINDS: [pattern: RegExp, weight: Weight, words: string][] = [
  [/^\*+$/, "all", "Do everything"],
  [/^chat$/, "talk", "Talk"],
  [/^chat\/\*$/, "talk", "Acknowledge and cancel chat"],
  [/^chat\/acknowledge$/, "talk", "Acknowledge chat"],
  [/^chat\/cancel$/, "talk", "Cancel chat"],
  [/^reasoning\/(\*|start|thought|conclusion)$/, "talk", "Think aloud"],
  [/^reasoning\/cancel$/, "control", "Stop others' reasoning"],
  [/^mcp\/\*$/, "act", "Call, propose, approve and reject anything"],
  [/^mcp\/response$/, "talk", "Answer what it is asked"],
  [/^mcp\/withdraw$/, "propose", "Take its own proposals back"],
  [/^mcp\/reject$/, "control", "Reject proposals"],
  [/^capability\/\*$/, "control", "Give and take away what it may do itself"],
  [/^capability\/grant$/, "control", "Give others what it may do itself"],
  [/^capability\/revoke$/, "control", "Take away what others may do"],
  [/^capability\/grant-ack$/, "talk", "Acknowledge what it is given"],
  [/^space\/\*$/, "control", "Invite and remove participants"],
  [/^space\/invite$/, "control", "Invite participants"],
  [/^space\/kick$/, "control", "Remove participants"],
  [/^participant\/\*$/, "control", "Pause, restart and stop others"],
  [/^participant\/(status|compact-done)$/, "talk", "Say how it is doing"],
  [/^participant\/request-status$/, "talk", "Ask others how they are doing"],
  [/^participant\/(\w+)$/, "control", "Control others: $1"],
  [/^stream\/(\*|request)$/, "talk", "Send data in streams"],
  [/^stream\/close$/, "talk", "Close its streams"],
];

const METHODS: Record<string, [any: string, named: string]> = {
  "tools/call": ["any tool", "the tool"],
  "tools/list": ["the lists of tools", "the list of tools"],
  "resources/read": ["any resource", "the resource"],
  "resources/list": ["the lists of resources", "the list of resources"],
  "prompts/get": ["any prompt", "the prompt"],
};

const ORDER: Weight[] = ["all", "act", "control", "propose", "talk"];

/** All that somebody may do, what weighs most first, each said once. */
export function inWords(capabilities: JsonObject[]): Said[] {
  const said = new Map<string, Said>();
  for (const capability of capabilities) {
    const one = sayOne(capability);
    said.set(`${one.words}|${one.limits.join("|")}`, one);
  }
  return [...said.values()].sort((one, other) => ORDER.indexOf(one.weight) - ORDER.indexOf(other.weight));
}

export function sayOne(capability: JsonObject): Said {
  const kind = said(capability.kind);
  const limits: string[] = [];
  if (capability.to !== undefined) limits.push(`only of ${said(capability.to)}`);
  const exceptions = Array.isArray(capability.except) ? capability.except.filter(isObject) : [];
  for (const exception of exceptions) limits.push(`not: ${sayOne(exception).words.toLowerCase()}`);
  if (kind === "mcp/request" || kind === "mcp/proposal") return operation(kind, capability, limits);
  for (const [pattern, weight, words] of KINDS) {
    const found = pattern.exec(kind);
    if (found !== null) return { weight, words: words.replace("$1", found[1] ?? ""), limits: withPayload(capability, limits) };
  }
  return { weight: "talk", words: `Send ${kind}`, limits: withPayload(capability, limits) };
}

function operation(kind: string, capability: JsonObject, limits: string[]): Said {
  const payload = objectIn(capability.payload);
  const params = objectIn(payload.params);
  const weight: Weight = kind === "mcp/request" ? "act" : "propose";
  const verb = kind === "mcp/request" ? "Use" : "Propose";
  const method = payload.method === undefined ? null : said(payload.method);
  if (method === null) return { weight, words: `${verb} anything of anyone`, limits: withPayload(capability, limits) };
  if (method.startsWith("notifications/")) return { weight: "talk", words: `Tell news (${method})`, limits };
  const [any, named] = own(METHODS, method) ?? [method, method];
  const name = params.name ?? params.uri ?? params.ref;
  for (const [key, value] of Object.entries(params)) {
    if (key !== "name" && key !== "uri" && key !== "ref") limits.push(`only with ${key} ${said(value)}`);
  }
  const words = `${verb} ${name === undefined ? any : `${named} ${said(name)}`}`;
  return { weight: method.endsWith("/list") ? "talk" : weight, words, limits };
}

function withPayload(capability: JsonObject, limits: string[]): string[] {
  if (capability.payload === undefined) return limits;
  return [...limits, `only with ${said(capability.payload)}`];
}

function said(pattern: Json | undefined): string {
  if (Array.isArray(pattern)) return pattern.map(said).join(" or ");
  return textIn(pattern) ?? JSON.stringify(pattern ?? null);
}
