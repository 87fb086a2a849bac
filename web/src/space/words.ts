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
  [/^chat$/, "talk", "Chat"],
  [/^chat\/\*$/, "talk", "Acknowledge and cancel chats"],
  [/^chat\/acknowledge$/, "talk", "Acknowledge chats"],
  [/^chat\/cancel$/, "talk", "Cancel chats"],
  [/^reasoning\/(\*|start|thought|conclusion)$/, "talk", "Share its reasoning"],
  [/^reasoning\/cancel$/, "control", "Cancel the reasoning of others"],
  [/^mcp\/\*$/, "act", "Call, propose, approve and reject anything"],
  [/^mcp\/response$/, "talk", "Respond to requests"],
  [/^mcp\/withdraw$/, "propose", "Withdraw its own proposals"],
  [/^mcp\/reject$/, "control", "Reject proposals"],
  [/^capability\/\*$/, "control", "Grant and revoke its own capabilities"],
  [/^capability\/grant$/, "control", "Grant its own capabilities to others"],
  [/^capability\/revoke$/, "control", "Revoke capabilities of others"],
  [/^capability\/grant-ack$/, "talk", "Acknowledge grants"],
  [/^space\/\*$/, "control", "Invite and remove participants"],
  [/^space\/invite$/, "control", "Invite participants"],
  [/^space\/kick$/, "control", "Remove participants"],
  [/^participant\/\*$/, "control", "Pause, restart and shut down others"],
  [/^participant\/(status|compact-done)$/, "talk", "Report its status"],
  [/^participant\/request-status$/, "talk", "Request the status of others"],
  [/^participant\/(\w+)$/, "control", "Control others: $1"],
  [/^autopilot\/\*$/, "control", "Control the autopilot"],
  [/^autopilot\/ratify$/, "control", "Accept rules of the autopilot"],
  [/^autopilot\/revoke$/, "control", "Pause and revoke rules of the autopilot"],
  [/^autopilot\/object$/, "control", "Object to decisions of the autopilot"],
  [/^autopilot\/mode$/, "control", "Change the mode of the autopilot"],
  [/^autopilot\/(decision|rule|summary)$/, "talk", "Speak as the autopilot"],
  [/^stream\/(\*|request)$/, "talk", "Send data in streams"],
  [/^stream\/close$/, "talk", "Close its streams"],
];

const METHODS: Record<string, [any: string, named: string]> = {
  "tools/call": ["any tool", "the tool"],
  "tools/list": ["tool lists", "the tool list"],
  "resources/read": ["any resource", "the resource"],
  "resources/list": ["resource lists", "the resource list"],
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
  if (capability.to !== undefined) limits.push(`only on ${said(capability.to)}`);
  const exceptions = Array.isArray(capability.except) ? capability.except.filter(isObject) : [];
  for (const exception of exceptions) limits.push(`except: ${sayOne(exception).words.toLowerCase()}`);
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
  if (method === null) return { weight, words: `${verb} anything on anyone`, limits: withPayload(capability, limits) };
  if (method.startsWith("notifications/")) return { weight: "talk", words: `Send notifications (${method})`, limits };
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
