/** PURE. Reading JSON that anybody may have written: a field is what it should be, or it is not there. */

import { type Json, type JsonObject, isObject } from "../json";

export function textIn(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}

export function numberIn(value: Json | undefined): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export function objectIn(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

export function listIn(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

export function textsIn(value: Json | undefined): string[] {
  return listIn(value).filter((item) => typeof item === "string");
}

const MOMENT = /^(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3])(?::[0-5]\d){2})(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;

/** An RFC 3339 timestamp as milliseconds since 1970; null for anything else. */
export function momentIn(value: Json | undefined): number | null {
  const [, day = "", time = "", fraction = "", zone = ""] = MOMENT.exec(textIn(value) ?? "") ?? [];
  const midnight = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== day) return null; // 30 February
  const at = Date.parse(`${day}T${time}${fraction}${zone.toUpperCase()}`);
  return Number.isNaN(at) ? null : at;
}

/** About how much memory a value takes; counting stops where it is more than `most`. */
export function roughSize(value: Json | undefined, most = 4_000_000): number {
  if (typeof value === "string") return 24 + value.length * 2;
  if (typeof value !== "object" || value === null) return 16;
  let size = 48;
  for (const name in value) {
    size += 24 + name.length + roughSize((value as JsonObject)[name], most - size);
    if (size > most) break;
  }
  return size;
}
