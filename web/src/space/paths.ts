/** PURE. Paths that can be written in several ways, as the gateway reads them: `mew.protocol.capability.values`. */

import { type Json, isObject } from "../json";

const PARENT = /(?<![^/\\])\.\.(?![^/\\])/;
const EMPTY_OR_DOTS = /[/\\]{2}|(?<![^/\\])\.\.?(?![^/\\])/;
const ENCODED = /%(?:25)*(?:2[def]|3[0-9]|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9ae])/i;
const REWRITTEN = /\/\/|\\|%|(?<![^/])\.\.?(?![^/])/;
const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//;
const DECODINGS_MAX = 4;

/** Whether `..` stands between separators, be it percent-encoded. */
export function climbs(text: string): boolean {
  return PARENT.test(decoded(text));
}

/** Whether it has an empty, `.` or `..` segment, or encoded letters. */
export function isIrregular(text: string): boolean {
  const path = parted(text).path;
  return EMPTY_OR_DOTS.test(path) || ENCODED.test(path) || climbs(text);
}

/** Nothing encoded that is ASCII, `/` for `\`, no empty segment and no `.`. */
export function plainPath(text: string): string {
  if (!REWRITTEN.test(text)) return text;
  const scheme = parted(text).scheme;
  const path = decoded(text.slice(scheme.length)).replaceAll("\\", "/");
  const kept = path.split("/").filter((segment) => segment !== "" && segment !== ".");
  const trail = kept.length > 0 && (path.endsWith("/") || path.endsWith("/.")) ? "/" : "";
  return `${scheme}${path.startsWith("/") ? "/" : ""}${kept.join("/")}${trail}`;
}

/** The same value with every path in it written plainly. */
export function writtenPlainly(value: Json | undefined): Json | undefined {
  if (typeof value === "string") return plainPath(value);
  if (Array.isArray(value)) return value.map((item) => writtenPlainly(item)!);
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, writtenPlainly(item)!]));
  return value;
}

function parted(text: string): { scheme: string; path: string } {
  const scheme = SCHEME.exec(text);
  if (scheme === null) return { scheme: "", path: text };
  const rest = text.slice(scheme[0].length);
  return { scheme: scheme[0], path: scheme[1]!.toLowerCase() === "file" ? rest : rest.split(/[?#]/, 1)[0]! };
}

function decoded(text: string): string {
  for (let count = 0; count < DECODINGS_MAX && text.includes("%"); count += 1) {
    const before = text;
    text = text.replace(/%([0-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
    if (text === before) break;
  }
  return text;
}
