/** PURE. The envelope of MEW v0.4. */

import { type Json, type JsonObject, isObject, parseJson } from "./json";

export const PROTOCOL = "mew/v0.4";
/** Who signs what the gateway itself says; no participant can. */
export const GATEWAY = "system:gateway";

/** An envelope as it was shown. `payload` may hold anything: its sender is whoever it is. */
export interface Envelope {
  protocol: string;
  id: string;
  from: string;
  kind: string;
  ts?: string;
  to?: string[];
  correlation_id?: string[];
  context?: string;
  payload?: JsonObject;
}

/** What a person sends; the wire adds `protocol`, `ts`, `from`, and an `id` where there is none. */
export type Draft = Pick<Envelope, "kind" | "to" | "correlation_id" | "context" | "payload"> & { id?: string };

/** Said to one alone, and no part of what everyone sees: nothing comes "after" them. */
export const PRIVATE_KINDS: ReadonlySet<string> = new Set(["system/welcome", "system/error", "space/invite-ack"]);

/** The envelope in this text; null if it is none, which no gateway of ours sends. */
export function readEnvelope(text: string): Envelope | null {
  try {
    const value = parseJson(text);
    return isEnvelope(value) ? value : null;
  } catch {
    return null;
  }
}

export function isEnvelope(value: Json): value is JsonObject & Envelope {
  if (!isObject(value)) return false;
  const named = [value.protocol, value.id, value.from, value.kind].every((field) => typeof field === "string");
  const texts = [value.ts, value.context].every((field) => field === undefined || typeof field === "string");
  const lists = [value.to, value.correlation_id].every((field) => field === undefined || isTexts(field));
  return named && texts && lists && (value.payload === undefined || isObject(value.payload));
}

function isTexts(value: Json): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
