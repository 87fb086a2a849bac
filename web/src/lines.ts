/** PURE. Two texts compared line by line and word by word, and diffs that came as text. */

import { diffArrays, diffWordsWithSpace } from "diff";

export interface Line {
  is: "same" | "added" | "removed" | "place" | "file" | "gap";
  text: string;
  /** The text in parts, if it replaces a similar line: which of them differ. */
  words?: Word[];
}

export interface Word {
  text: string;
  isChanged: boolean;
}

const AROUND = 3;
/** Comparing gives up after this: then every line counts as replaced. */
const COMPARE_MS = 1_000;
const WORDS_CHARS_MAX = 1_000;
const WORD_LINES_MAX = 500;

/** All lines of both texts, none left out. */
export function compareLines(old: string, now: string): Line[] {
  const [before, after] = [old.split("\n"), now.split("\n")];
  const parts = diffArrays(before, after, { timeout: COMPARE_MS });
  if (parts === undefined) return [...before.map(removed), ...after.map(added)];
  const lines = parts.flatMap(({ value, added: isAdded, removed: isRemoved }) => value.map(isAdded ? added : isRemoved ? removed : same));
  return withWords(lines);
}

/** Mark the words that differ where as many lines were added as removed. */
function withWords(lines: Line[]): Line[] {
  let pairs = 0;
  for (let start = 0; start < lines.length && pairs < WORD_LINES_MAX; start += 1) {
    if (lines[start]?.is !== "removed") continue;
    let middle = start;
    while (lines[middle]?.is === "removed") middle += 1;
    let end = middle;
    while (lines[end]?.is === "added") end += 1;
    const isPaired = end - middle === middle - start;
    for (let at = start; isPaired && at < middle && pairs < WORD_LINES_MAX; at += 1) {
      compareWords(lines[at], lines[middle + at - start]);
      pairs += 1;
    }
    start = end - 1;
  }
  return lines;
}

function compareWords(old: Line | undefined, now: Line | undefined): void {
  if (old === undefined || now === undefined || old.text.length + now.text.length > WORDS_CHARS_MAX) return;
  const parts = diffWordsWithSpace(old.text, now.text);
  if (!parts.some((part) => !part.added && !part.removed && part.value.trim() !== "")) return; // nothing in common
  old.words = parts.filter((part) => !part.added).map(({ value, removed: isChanged }) => ({ text: value, isChanged }));
  now.words = parts.filter((part) => !part.removed).map(({ value, added: isChanged }) => ({ text: value, isChanged }));
}

/** What changed, with a few lines around each change. */
export function aroundChanges(lines: Line[]): Line[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, at) => {
    if (line.is !== "same") near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1);
  });
  const found: Line[] = [];
  let skipped = 0;
  lines.forEach((line, at) => {
    if (near[at] === 1) {
      if (skipped > 0) found.push({ is: "gap", text: `${skipped} unchanged lines` });
      skipped = 0;
      found.push(line);
    } else skipped += 1;
  });
  if (skipped > 0) found.push({ is: "gap", text: `${skipped} unchanged lines` });
  return found;
}

/** Whether a text is a diff as programs write it. */
export function looksLikeDiff(text: string): boolean {
  const start = text.slice(0, 4_000);
  return /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/m.test(start) || (/^--- /m.test(start) && /^\+\+\+ /m.test(start));
}

export function readDiff(text: string): Line[] {
  return text.split("\n").map(diffLine);
}

const same = (text: string): Line => ({ is: "same", text });
const removed = (text: string): Line => ({ is: "removed", text });
const added = (text: string): Line => ({ is: "added", text });

function diffLine(line: string): Line {
  if (/^(diff |index |--- |\+\+\+ |new file|deleted file|rename |similarity )/.test(line)) return { is: "file", text: line };
  if (line.startsWith("@@")) return { is: "place", text: line };
  if (line.startsWith("+")) return { is: "added", text: line.slice(1) };
  if (line.startsWith("-")) return { is: "removed", text: line.slice(1) };
  return line.startsWith(" ") ? same(line.slice(1)) : { is: "place", text: line };
}
