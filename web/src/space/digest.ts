/** PURE. The digest of what a proposal would do: SHA-256 over its canonical JSON (RFC 8785), the same as everywhere in mew. */

import { type Json, type JsonObject, exactDigits, isObject } from "../json";

/** Lower-case hex; null where something in it has no canonical form: a lone surrogate, a number doubles cannot tell. */
export function digest(to: string[], method: string, params: JsonObject, schema: JsonObject | null): string | null {
  const target: Json = to.length === 0 ? null : to.length === 1 ? (to[0] ?? null) : [...new Set(to)].sort();
  const text = canonical({ target, method, params, schema });
  return text === null ? null : sha256(new TextEncoder().encode(text));
}

/** The one way to write a value; `JSON.stringify` writes numbers and texts as RFC 8785 wants them. */
export function canonical(value: Json): string | null {
  if (exactDigits(value) !== null) return null;
  if (typeof value === "string") return value.isWellFormed() ? JSON.stringify(value) : null;
  if (Array.isArray(value)) return joined("[", value.map(canonical), "]");
  if (!isObject(value)) return JSON.stringify(value);
  const fields = Object.keys(value).sort().map((name) => {
    const [key, inner] = [canonical(name), canonical(value[name] ?? null)];
    return key === null || inner === null ? null : `${key}:${inner}`;
  });
  return joined("{", fields, "}");
}

function joined(open: string, parts: (string | null)[], close: string): string | null {
  return parts.includes(null) ? null : open + parts.join(",") + close;
}

// Browsers keep `crypto.subtle` from pages without TLS, and a gateway in a home network has none.
const PRIMES = primes(64);
const K = Uint32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));
const START = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));

function sha256(message: Uint8Array): string {
  const size = Math.ceil((message.length + 9) / 64) * 64;
  const padded = new Uint8Array(size);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(size - 8, Math.floor(message.length / 0x2000_0000));
  view.setUint32(size - 4, (message.length << 3) >>> 0);
  const state = START.slice();
  for (let offset = 0; offset < size; offset += 64) compress(state, view, offset);
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}

function compress(state: Uint32Array, view: DataView, offset: number): void {
  const words = new Uint32Array(64);
  const word = (at: number): number => words[at] ?? 0;
  for (let at = 0; at < 64; at += 1) {
    if (at < 16) words[at] = view.getUint32(offset + at * 4);
    else {
      const [near, far] = [word(at - 2), word(at - 15)];
      const one = turned(far, 7) ^ turned(far, 18) ^ (far >>> 3);
      const two = turned(near, 17) ^ turned(near, 19) ^ (near >>> 10);
      words[at] = word(at - 16) + one + word(at - 7) + two;
    }
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let at = 0; at < 64; at += 1) {
    const one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + (K[at] ?? 0) + word(at);
    const two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) >>> 0, c, b, a, (one + two) >>> 0];
  }
  [a, b, c, d, e, f, g, h].forEach((value, at) => (state[at] = (state[at] ?? 0) + value));
}

function turned(value: number, by: number): number {
  return (value >>> by) | (value << (32 - by));
}

function fraction(value: number): number {
  return Math.floor((value - Math.floor(value)) * 0x1_0000_0000);
}

function primes(count: number): number[] {
  const found: number[] = [];
  for (let candidate = 2; found.length < count; candidate += 1) {
    if (found.every((prime) => candidate % prime !== 0)) found.push(candidate);
  }
  return found;
}
