/** PURE. Text of others made safe to look at: nothing in it hides, moves or imitates what the page itself says. */

/** Text as it is, or a character that cannot be seen, with its name. */
export type Piece = string | { shown: string; title: string };

// Controls, bidirectional marks and overrides, and all that fonts draw as nothing; lone surrogates; heaps of accents.
const HIDDEN =
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f" +
  "\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}\\ud800-\\udfff]";
const ONE_EMOJI = "\\p{Extended_Pictographic}\\ufe0f?(?:[\\u{1f3fb}-\\u{1f3ff}])?";
const EMOJI = `${ONE_EMOJI}(?:\\u200d${ONE_EMOJI})*`;
// What pushes the rest out of sight: longer than any indentation, emptier than any text needs to be.
const SPACES = "[\\t\\p{Zs}]{40,}";
const EMPTY_LINES = "\\n(?:[\\t\\p{Zs}]*\\n){5,}";
const TELLING = new RegExp(
  `(?<emoji>${EMOJI})|(?<hidden>${HIDDEN})|(?<=\\p{M}{4})(?<heap>\\p{M}+)|(?<lines>${EMPTY_LINES})|(?<spaces>${SPACES})`,
  "gu",
);
const GAP = new RegExp(`${EMPTY_LINES}|${SPACES}`, "gu");
const SUSPECT = new RegExp(`${HIDDEN}|\\p{M}{5}|${SPACES}|${EMPTY_LINES}`, "u");
// Line breaks and tabs; letters that are written from right to left.
const BREAKS_OR_TURNS = /[\n\t\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const NAME = /^[A-Za-z0-9_][A-Za-z0-9._@/:-]*$/;
/** What the page itself calls somebody. */
const TAKEN = new Set(["gateway", "everyone", "someone", "you"]);
const NAMED: Record<string, string> = {
  "202a": "left-to-right embedding", "202b": "right-to-left embedding", "202c": "end of direction", "202d": "left-to-right override",
  "202e": "right-to-left override", "200b": "zero-width space", "200c": "zero-width non-joiner", "200d": "zero-width joiner",
  "200e": "left-to-right mark", "200f": "right-to-left mark", "2066": "left-to-right isolate", "2067": "right-to-left isolate",
  "2068": "first strong isolate", "2069": "end of isolate", feff: "byte order mark", "00ad": "soft hyphen", "001b": "escape", "0000": "null",
};

const BRIEF_MAX = 8_000;
const CHARACTERS_A_LINE = 40;
const READ_MAX = 200_000;

/** The text in pieces, for the page to show. */
export function pieces(text: string): Piece[] {
  if (!SUSPECT.test(text)) return [text];
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(TELLING)) {
    const { emoji, hidden, heap, lines, spaces } = match.groups ?? {};
    if (emoji !== undefined) continue;
    if (match.index > end) found.push(text.slice(end, match.index));
    if (hidden !== undefined) found.push(charOf(hidden));
    else if (heap !== undefined) found.push(heapOf(heap));
    else if (spaces !== undefined) found.push({ shown: counted(spaces.length, "space"), title: "a gap, shown short" });
    else found.push("\n", { shown: counted((lines ?? "").split("\n").length - 2, "empty line"), title: "a gap, shown short" }, "\n");
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push(text.slice(end));
  return found;
}

/** Whether a field shows all of it: nothing in it is invisible, or pushed out of sight. */
export function isSeen(text: string): boolean {
  return !SUSPECT.test(text) || pieces(text).every((piece) => typeof piece === "string");
}

/** Whether it is seen as it is, in one line and in the order it is written. */
export function isPlain(text: string): boolean {
  return isSeen(text) && !BREAKS_OR_TURNS.test(text);
}

/** The same as one text, for titles and names that are read aloud. */
export function visible(text: string, most = 200): string {
  const cutOff = cut(text, most);
  return pieces(cutOff).map((piece) => (typeof piece === "string" ? piece.replace(/\s+/g, " ") : `[${piece.shown}]`)).join("");
}

/** A value in one line, in little room: its beginning and its end, because what matters of a path is there. */
export function brief(text: string, most: number): string {
  const shown = visible(text.length > BRIEF_MAX ? `${text.slice(0, BRIEF_MAX / 2)}…${text.slice(-BRIEF_MAX / 2)}` : text, BRIEF_MAX + 1);
  if (shown.length <= most) return shown;
  const tail = Math.floor((most - 1) * 0.4);
  const end = shown.slice(-tail);
  return cut(shown, most - tail) + (isLow(end.charCodeAt(0)) ? end.slice(1) : end);
}

/** How much of a text is shown at first: so many characters, and not more lines than such a text mostly has. A gap is as one line. */
export function firstPart(text: string, most: number, linesMax = Math.ceil(most / CHARACTERS_A_LINE)): number {
  let [end, left, lines] = [0, most, linesMax];
  for (const gap of [...gapsIn(text, lines), null]) {
    const next = gap?.index ?? text.length;
    while (end < next) {
      const newline = text.indexOf("\n", end);
      const stop = newline < 0 || newline >= next ? next : newline + 1;
      if (stop - end > left) return end + left;
      left -= stop - end;
      end = stop;
      if (stop === newline + 1) lines -= 1;
      if (lines <= 0) return end;
    }
    if (gap !== null) end += gap[0].length;
    lines -= 1;
  }
  return end;
}

/** The text in chunks of about this size, which end with a line where there is one, and never within a character. */
export function chunksOf(text: string, size: number): string[] {
  const chunks: string[] = [];
  for (let [start, end] = [0, 0]; start < text.length; start = end) {
    end = Math.min(start + size, text.length);
    const line = text.lastIndexOf("\n", end - 1) + 1;
    if (end < text.length && line > start + size / 2) end = line;
    else if (end < text.length && isLow(text.charCodeAt(end))) end -= 1;
    chunks.push(text.slice(start, end));
  }
  return chunks;
}

function gapsIn(text: string, most: number): RegExpExecArray[] {
  const found: RegExpExecArray[] = [];
  for (const match of text.slice(0, READ_MAX).matchAll(GAP)) {
    found.push(match);
    if (found.length >= most) break;
  }
  return found;
}

/** A name as it is if it could not be mistaken for anything else, in quotes if it could. */
export function named(name: string, most = 80): string {
  const isPlain = name.length <= most && NAME.test(name) && !TAKEN.has(name.toLowerCase());
  return isPlain ? name : `“${visible(name, most)}”`;
}

/** The text, or its beginning with a mark that it goes on; never half a character. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 2);
  return `${text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 2 : most - 1)}…`;
}

/** `12,345`; what nobody counts up to is written short. */
export function count(amount: number): string {
  return Math.abs(amount) < 1e15 ? amount.toLocaleString("en") : amount.toExponential(2).replace("+", "");
}

/** `1 tool`, `2 tools` */
export function counted(amount: number, one: string): string {
  return `${count(amount)} ${one}${amount === 1 ? "" : "s"}`;
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

function isLow(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}

function charOf(char: string): Piece {
  const code = (char.codePointAt(0) ?? 0).toString(16).padStart(4, "0");
  const name = NAMED[code];
  return { shown: `U+${code.toUpperCase()}`, title: name === undefined ? "a character that cannot be seen" : name };
}

function heapOf(marks: string): Piece {
  return { shown: `+${[...marks].length}`, title: "more accents on one letter" };
}
