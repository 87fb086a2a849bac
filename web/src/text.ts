/** PURE. Text of others made safe to look at: nothing in it hides, moves or imitates what the page itself says. */

/** Text as it is, or a character that cannot be seen, with its name. */
export type Piece = string | { shown: string; title: string };

// Controls, bidirectional marks and overrides, and all that fonts draw as nothing; lone surrogates; heaps of accents.
const HIDDEN =
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f" +
  "\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}\\ud800-\\udfff]";
const EMOJI = "\\p{Extended_Pictographic}\\ufe0f?(?:[\\u{1f3fb}-\\u{1f3ff}])?(?:\\u200d\\p{Extended_Pictographic}\\ufe0f?(?:[\\u{1f3fb}-\\u{1f3ff}])?)*";
const TELLING = new RegExp(`(?<emoji>${EMOJI})|(?<hidden>${HIDDEN})|(?<=\\p{M}{4})(?<heap>\\p{M}+)`, "gu");
const SUSPECT = new RegExp(`${HIDDEN}|\\p{M}{5}`, "u");
const NAME = /^[A-Za-z0-9_][A-Za-z0-9._@/:-]*$/;
const NAMED: Record<string, string> = {
  "202a": "left-to-right embedding", "202b": "right-to-left embedding", "202c": "end of direction", "202d": "left-to-right override",
  "202e": "right-to-left override", "200b": "zero-width space", "200c": "zero-width non-joiner", "200d": "zero-width joiner",
  "200e": "left-to-right mark", "200f": "right-to-left mark", "2066": "left-to-right isolate", "2067": "right-to-left isolate",
  "2068": "first strong isolate", "2069": "end of isolate", feff: "byte order mark", "00ad": "soft hyphen", "001b": "escape", "0000": "null",
};

/** The text in pieces, for the page to show. */
export function pieces(text: string): Piece[] {
  if (!SUSPECT.test(text)) return [text];
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(TELLING)) {
    const { hidden, heap } = match.groups ?? {};
    if (hidden === undefined && heap === undefined) continue;
    if (match.index > end) found.push(text.slice(end, match.index));
    found.push(hidden === undefined ? heapOf(heap ?? "") : charOf(hidden));
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push(text.slice(end));
  return found;
}

/** The same as one text, for titles and names that are read aloud. */
export function visible(text: string, most = 200): string {
  const cutOff = cut(text, most);
  return pieces(cutOff).map((piece) => (typeof piece === "string" ? piece.replace(/\s+/g, " ") : `[${piece.shown}]`)).join("");
}

/** A name as it is if it could not be mistaken for anything else, in quotes if it could. */
export function named(name: string, most = 80): string {
  return name.length <= most && NAME.test(name) ? name : `“${visible(name, most)}”`;
}

/** The text, or its beginning with a mark that it goes on; never half a character. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 2);
  return `${text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 2 : most - 1)}…`;
}

/** `12,345` */
export function count(amount: number): string {
  return amount.toLocaleString("en");
}

export function bytes(amount: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [amount, 0];
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** A length of time as a person says it: `0.4 s`, `12 s`, `3 min`, `2 h`, `5 d`. */
export function lasting(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 90 * 60) return `${Math.round(s / 60)} min`;
  if (s < 36 * 3600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86_400)} d`;
}

function charOf(char: string): Piece {
  const code = (char.codePointAt(0) ?? 0).toString(16).padStart(4, "0");
  const name = NAMED[code];
  return { shown: `U+${code.toUpperCase()}`, title: name === undefined ? "a character that cannot be seen" : name };
}

function heapOf(marks: string): Piece {
  return { shown: `+${[...marks].length}`, title: "more accents on one letter" };
}
