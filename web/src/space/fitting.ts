/**
 * PURE. Whether a capability fits an envelope, as far as a page can say: a hint for what to offer, no more.
 *
 * The gateway decides. What cannot be told here without running an expression of somebody else's counts as fitting.
 */

import type { Draft } from "../envelope";
import { type Json, type JsonObject, isObject } from "../json";
import { same } from "./differences";

const TEXT_MAX = 4_096;

/** Whether one of these capabilities may let the envelope through. */
export function mayDo(capabilities: JsonObject[], draft: Draft): boolean {
  return capabilities.some((capability) => fits(capability, draft));
}

function fits(capability: JsonObject, draft: Draft): boolean {
  if (capability.kind === undefined || !fitsValue(capability.kind, draft.kind)) return false;
  if (capability.to !== undefined) {
    const to = draft.to ?? [];
    if (to.length === 0 || !to.every((who) => fitsValue(capability.to, who))) return false;
  }
  if (capability.payload !== undefined && !fitsValue(capability.payload, draft.payload ?? {})) return false;
  const exceptions = Array.isArray(capability.except) ? capability.except : [];
  return !exceptions.some((exception) => isObject(exception) && isPlain(exception) && fits(exception, draft));
}

function fitsValue(pattern: Json | undefined, value: Json | undefined): boolean {
  if (value === undefined) return false;
  if (typeof pattern === "string") return fitsText(pattern, value);
  if (Array.isArray(pattern)) return pattern.some((one) => fitsValue(one, value));
  if (isObject(pattern)) {
    return Object.entries(pattern).every(([name, inner]) => {
      if (name.startsWith("$")) return true;
      return isObject(value) && Object.hasOwn(value, name) && fitsValue(inner, value[name]);
    });
  }
  return same(pattern, value);
}

function fitsText(pattern: string, value: Json): boolean {
  if (pattern === "*") return true;
  if (typeof value !== "string") return false;
  if (pattern.length > 1 && pattern.startsWith("/") && pattern.endsWith("/")) return true;
  if (pattern.startsWith("!")) return !isPlain(pattern.slice(1)) || !fitsText(pattern.slice(1), value);
  return globFits(pattern, value);
}

/** Whether all of it can be told here. */
function isPlain(pattern: Json): boolean {
  if (typeof pattern === "string") return !(pattern.length > 1 && pattern.startsWith("/") && pattern.endsWith("/"));
  if (Array.isArray(pattern)) return pattern.every(isPlain);
  if (isObject(pattern)) return Object.entries(pattern).every(([name, inner]) => !name.startsWith("$") && isPlain(inner));
  return true;
}

/** `*` is any run without `/`, `**` any run, `?` one character but `/`; all places at once, so it takes no longer for bad ones. */
export function globFits(pattern: string, text: string): boolean {
  if (!/[*?]/.test(pattern)) return pattern === text;
  if (text.length > TEXT_MAX || text.split("/").includes("..")) return false;
  const parts = pattern.match(/\*\*+|\*|\?|[^*?]/gs) ?? [];
  let places = closure(new Set([0]), parts);
  for (const char of text) {
    const next = new Set<number>();
    for (const place of places) {
      const part = parts[place] ?? "";
      if (part.startsWith("**") || (part === "*" && char !== "/")) next.add(place);
      else if ((part === "?" && char !== "/") || part === char) next.add(place + 1);
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
