/**
 * PURE. Markdown as a tree of our own: only what is listed here can become an element, and the rest stays text.
 *
 * It takes time in proportion to the text. There is no HTML in it, images are only told of, and a link keeps its address.
 */

export type Inline =
  | { is: "text"; text: string }
  | { is: "code"; text: string }
  | { is: "strong" | "emphasis" | "struck"; inside: Inline[] }
  | { is: "link"; inside: Inline[]; address: string }
  | { is: "image"; text: string; address: string }
  | { is: "break" };

export type Block =
  | { is: "paragraph"; inside: Inline[] }
  | { is: "heading"; level: number; inside: Inline[] }
  | { is: "code"; language: string; text: string }
  | { is: "quote"; inside: Block[] }
  | { is: "list"; ordered: boolean; start: number; items: Block[][] }
  | { is: "table"; head: Inline[][]; rows: Inline[][][] }
  | { is: "rule" };

const DEPTH_MAX = 6;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,32})/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const ITEM = /^( {0,3})([-*+]|(\d{1,9})[.)])([ \t]+|$)/;
const QUOTE = /^ {0,3}> ?/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const SAFE_ADDRESS = /^(?:https?:\/\/[^\s<>"'`]+|mailto:[^\s<>"'`]+)$/i;

/** The blocks of a text. */
export function parseMarkdown(text: string): Block[] {
  return blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

/** Whether an address may be led to at all. */
export function isSafeAddress(address: string): boolean {
  return address.length <= 2_048 && SAFE_ADDRESS.test(address);
}

/** Where an address leads, as the browser would read it, so that look-alike letters are seen. */
export function hostOf(address: string): string {
  if (!URL.canParse(address)) return address;
  const { host, href } = new URL(address);
  return host === "" ? href : host;
}

/** Whether an address says for itself where it leads: not `https://bank.example@evil.example`, and in no foreign letters. */
export function beginsWithHost(address: string): boolean {
  return URL.canParse(address) && address.toLowerCase().startsWith(new URL(address).origin);
}

function blocks(lines: string[], depth: number): Block[] {
  const found: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const special = depth < DEPTH_MAX ? blockAt(lines, at, depth) : null;
    if (special !== null) {
      found.push(special.block);
      at = special.end;
      continue;
    }
    const begin = at;
    do at += 1;
    while (at < lines.length && !endsParagraph(lines, at, depth));
    const paragraph = lines.slice(begin, at).map((one) => one.trim()).join("\n");
    found.push({ is: "paragraph", inside: inlines(paragraph, 0) });
  }
  return found;
}

interface Taken {
  block: Block;
  end: number;
}

function blockAt(lines: string[], at: number, depth: number): Taken | null {
  const line = lines[at] ?? "";
  const fence = FENCE.exec(line);
  if (fence !== null) return fenced(lines, at, fence[1] ?? "```", fence[2] ?? "");
  const heading = HEADING.exec(line);
  if (heading !== null) {
    const inside = inlines(withoutMarks(heading[2] ?? ""), 0);
    return { block: { is: "heading", level: (heading[1] ?? "#").length, inside }, end: at + 1 };
  }
  if (RULE.test(line)) return { block: { is: "rule" }, end: at + 1 };
  if (QUOTE.test(line)) return quoted(lines, at, depth);
  if (ITEM.test(line)) return listed(lines, at, depth);
  if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) return table(lines, at);
  return null;
}

/** Without the `#` that may close a heading, apart from its words; an expression for that takes ever longer on the wrong text. */
function withoutMarks(heading: string): string {
  const words = heading.trimEnd();
  let end = words.length;
  while (words[end - 1] === "#") end -= 1;
  return end === 0 || /\s/.test(words[end - 1] ?? "") ? words.slice(0, end).trimEnd() : words;
}

function endsParagraph(lines: string[], at: number, depth: number): boolean {
  const line = lines[at] ?? "";
  if (line.trim() === "") return true;
  if (depth >= DEPTH_MAX) return false;
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function fenced(lines: string[], at: number, fence: string, language: string): Taken {
  let end = at + 1;
  while (end < lines.length && !(lines[end] ?? "").trim().startsWith(fence)) end += 1;
  return { block: { is: "code", language, text: lines.slice(at + 1, end).join("\n") }, end: end + 1 };
}

function quoted(lines: string[], at: number, depth: number): Taken {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end] ?? "")) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return { block: { is: "quote", inside: blocks(inner, depth + 1) }, end };
}

function listed(lines: string[], at: number, depth: number): Taken {
  const first = ITEM.exec(lines[at] ?? "");
  const ordered = first?.[3] !== undefined;
  const items: Block[][] = [];
  let end = at;
  while (end < lines.length) {
    const match = ITEM.exec(lines[end] ?? "");
    if (match === null || (match[3] !== undefined) !== ordered) break;
    const indent = match[0].length;
    const item = [(lines[end] ?? "").slice(indent)];
    end += 1;
    while (end < lines.length) {
      const line = lines[end] ?? "";
      const deeper = /^[ \t]*/.exec(line)?.[0].length ?? 0;
      if (line.trim() === "" ? !/^[ \t]{2,}\S/.test(lines[end + 1] ?? "") : deeper < Math.min(indent, 2)) break;
      item.push(line.slice(Math.min(deeper, indent)));
      end += 1;
    }
    items.push(blocks(item, depth + 1));
  }
  return { block: { is: "list", ordered, start: Number(first?.[3] ?? 1), items }, end };
}

function table(lines: string[], at: number): Taken {
  let end = at + 2;
  while (end < lines.length && (lines[end] ?? "").includes("|")) end += 1;
  const rows = lines.slice(at + 2, end).map(cells);
  return { block: { is: "table", head: cells(lines[at] ?? ""), rows }, end };
}

function cells(line: string): Inline[][] {
  return line.trim().replace(/^\||\|$/g, "").split("|").slice(0, 50).map((cell) => inlines(cell.trim(), 0));
}

// Inside a line. Each rule starts at the place where it is tried, and looks no further than a bounded way ahead.
const REACH = 4_096;
const WRAPS: [mark: string, is: "strong" | "emphasis" | "struck"][] = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "struck"],
  ["*", "emphasis"],
  ["_", "emphasis"],
];

function inlines(text: string, depth: number): Inline[] {
  const found: Inline[] = [];
  let plain = "";
  let at = 0;
  // Marks that were looked for once and have no end ahead are not looked for again.
  const hopeless = new Set<string>();
  while (at < text.length) {
    const taken = depth < DEPTH_MAX ? inlineAt(text, at, depth, hopeless) : null;
    if (taken === null) {
      plain += text[at] ?? "";
      at += 1;
      continue;
    }
    if (plain !== "") found.push({ is: "text", text: plain });
    plain = "";
    found.push(taken.inline);
    at = taken.end;
  }
  if (plain !== "") found.push({ is: "text", text: plain });
  return found;
}

interface TakenInline {
  inline: Inline;
  end: number;
}

function inlineAt(text: string, at: number, depth: number, hopeless: Set<string>): TakenInline | null {
  const char = text[at] ?? "";
  if (char === "\n") return { inline: { is: "break" }, end: at + 1 };
  if (char === "\\" && /[\\`*_~[\]()#+\-.!|<>]/.test(text[at + 1] ?? "")) {
    return { inline: { is: "text", text: text[at + 1] ?? "" }, end: at + 2 };
  }
  if (char === "`") return code(text, at);
  if (char === "[" || (char === "!" && text[at + 1] === "[")) return link(text, at, depth);
  if (char === "h" || char === "<") return bareLink(text, at);
  if (char === "*" || char === "_" || char === "~") return wrapped(text, at, depth, hopeless);
  return null;
}

function code(text: string, at: number): TakenInline | null {
  const ticks = /^`+/.exec(text.slice(at, at + 8))?.[0] ?? "`";
  const close = text.indexOf(ticks, at + ticks.length);
  if (close < 0 || close - at > REACH) return null;
  return { inline: { is: "code", text: text.slice(at + ticks.length, close).trim() }, end: close + ticks.length };
}

function link(text: string, at: number, depth: number): TakenInline | null {
  const image = text[at] === "!";
  const begin = at + (image ? 2 : 1);
  const close = text.slice(begin, begin + 1_000).indexOf("](");
  if (close < 0) return null;
  const label = text.slice(begin, begin + close);
  const rest = text.slice(begin + close + 2, begin + close + 2 + 2_048);
  const match = /^\s*<?([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+"[^"]*")?\s*\)/.exec(rest);
  if (match === null || label.includes("\n\n")) return null;
  const address = match[1] ?? "";
  const end = begin + close + 2 + match[0].length;
  if (image) return { inline: { is: "image", text: label, address }, end };
  return { inline: { is: "link", inside: inlines(label, depth + 3), address }, end };
}

function bareLink(text: string, at: number): TakenInline | null {
  const boundary = at === 0 || /[\s(<[]/.test(text[at - 1] ?? " ") || text[at] === "<";
  if (!boundary) return null;
  const match = /^<?(https?:\/\/[^\s<>"'`]{1,2000})>?/i.exec(text.slice(at, at + 2_050));
  if (match === null) return null;
  const angled = text[at] === "<";
  const address = angled ? (match[1] ?? "") : (match[1] ?? "").replace(/[.,;:!?)\]]+$/, "");
  const end = at + (angled ? match[0].length : address.length);
  return { inline: { is: "link", inside: [{ is: "text", text: address }], address }, end };
}

function wrapped(text: string, at: number, depth: number, hopeless: Set<string>): TakenInline | null {
  for (const [mark, is] of WRAPS) {
    if (!text.startsWith(mark, at) || hopeless.has(mark)) continue;
    const inside = at + mark.length;
    if (/\s|^$/.test(text[inside] ?? "")) continue;
    if (mark.startsWith("_") && /\w/.test(text[at - 1] ?? "")) continue;
    const close = closing(text, inside, mark);
    if (close === null) {
      hopeless.add(mark);
      continue;
    }
    return { inline: { is, inside: inlines(text.slice(inside, close), depth + 1) }, end: close + mark.length };
  }
  return null;
}

function closing(text: string, from: number, mark: string): number | null {
  let at = text.indexOf(mark, from + 1);
  for (let tries = 0; at >= 0 && at - from <= REACH && tries < 32; tries += 1) {
    const [before, after] = [text[at - 1] ?? "", text[at + mark.length] ?? ""];
    const single = mark.length > 1 || (after !== mark && before !== mark);
    if (!/\s/.test(before) && single && !(mark.startsWith("_") && /\w/.test(after))) return at;
    at = text.indexOf(mark, at + 1);
  }
  return null;
}
