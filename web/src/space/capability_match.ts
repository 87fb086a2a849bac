/**
 * PURE. Whether a capability fits an envelope, as far as a page can say: a hint for what to offer, no more.
 *
 * The gateway decides. What cannot be told here without running an expression of somebody else's counts as fitting.
 */

import type { Draft } from "../envelope";
import { type Json, type JsonObject, isObject } from "../json";
import { same } from "./differences";
import { climbs, isIrregular, plainPath, writtenPlainly } from "./paths";

const TEXT_MAX = 4_096;
const SEPARATORS = "/\\";

/** Whether one of these capabilities may let the envelope through. */
export function mayDo(capabilities: JsonObject[], draft: Draft): boolean {
  return capabilities.some((capability) => fits(capability, draft));
}

function fits(capability: JsonObject, draft: Draft): boolean {
  const to = draft.to ?? [];
  if (capability.kind === undefined || !fitsValue(capability.kind, draft.kind)) return false;
  if (capability.to !== undefined && (to.length === 0 || !to.every((who) => fitsValue(capability.to, who)))) return false;
  if (capability.payload !== undefined && !fitsValue(capability.payload, draft.payload ?? undefined)) return false;
  const exceptions = Array.isArray(capability.except) ? capability.except : [];
  return !exceptions.some((exception) => isObject(exception) && isPlain(exception) && isExcepted(exception, draft));
}

/** An exception fits as soon as one addressee does, or nobody is named, and however the paths in the payload are written. */
function isExcepted(exception: JsonObject, draft: Draft): boolean {
  const to = draft.to ?? [];
  if (!fitsValue(exception.kind, draft.kind)) return false;
  if (exception.to !== undefined && to.length > 0 && !to.some((who) => fitsValue(exception.to, who))) return false;
  if (exception.payload === undefined) return true;
  const payload = draft.payload ?? undefined;
  return fitsValue(exception.payload, payload) || fitsValue(exception.payload, writtenPlainly(payload));
}

function fitsValue(pattern: Json | undefined, value: Json | undefined): boolean {
  if (value === undefined) return false;
  if (typeof pattern === "string") return fitsText(pattern, value);
  if (Array.isArray(pattern)) return pattern.some((one) => fitsValue(one, value));
  if (isObject(pattern)) {
    if (!isObject(value)) return false;
    return Object.entries(pattern).every(
      ([name, inner]) => name.startsWith("$") || (Object.hasOwn(value, name) && fitsValue(inner, value[name])),
    );
  }
  return same(pattern, value);
}

function fitsText(pattern: string, value: Json): boolean {
  if (/^\*+$/.test(pattern)) return typeof value !== "string" || !climbs(value);
  if (typeof value !== "string") return false;
  if (isExpression(pattern)) return !climbs(value);
  if (!pattern.startsWith("!")) return globFits(pattern, value);
  if (climbs(value)) return false;
  const inner = pattern.slice(1);
  return !isPlain(inner) || !(fitsText(inner, value) || fitsText(inner, plainPath(value)));
}

function isExpression(pattern: string): boolean {
  return pattern.length > 1 && pattern.startsWith("/") && pattern.endsWith("/");
}

/** Whether all of it can be told here. */
function isPlain(pattern: Json): boolean {
  if (typeof pattern === "string") return !isExpression(pattern.replace(/^!+/, ""));
  if (Array.isArray(pattern)) return pattern.every(isPlain);
  if (isObject(pattern)) return Object.entries(pattern).every(([name, inner]) => !name.startsWith("$") && isPlain(inner));
  return true;
}

/** `*` is any run without a separator, `**` any run, `?` one character but a separator; all places at once, so bad ones take no longer. */
export function globFits(pattern: string, text: string): boolean {
  if (!/[*?]/.test(pattern)) return pattern === text;
  if (text.length > TEXT_MAX || isIrregular(pattern.startsWith("./") ? text.slice(2) : text)) return false;
  const parts = pattern.match(/\*\*+|\*|\?|[^*?]/gs) ?? [];
  let places = closure(new Set([0]), parts);
  for (const char of text) {
    const next = new Set<number>();
    for (const place of places) {
      const part = parts[place] ?? "";
      if (part.startsWith("**") || (part === "*" && !SEPARATORS.includes(char))) next.add(place);
      else if ((part === "?" && !SEPARATORS.includes(char)) || part === char) next.add(place + 1);
    }
    places = closure(next, parts);
    if (places.size === 0) return false;
  }
  return places.has(parts.length);
}

/** With the places behind wildcards, which may be empty. */
function closure(places: Set<number>, parts: string[]): Set<number> {
  for (const place of places) {
    if (parts[place]?.startsWith("*") === true) places.add(place + 1);
  }
  return places;
}
