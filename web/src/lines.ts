/** PURE. Two texts compared line by line, and diffs that came as text. */

export interface Line {
  is: "same" | "added" | "removed" | "place" | "file" | "gap";
  text: string;
}

export const COMPARED_LINES_MAX = 2_000;
const CELLS_MAX = 4_000_000;
const AROUND = 3;

/** All lines of both texts; beyond the first 2,000, those of the one and then those of the other. */
export function compareLines(old: string, now: string): Line[] {
  const [olds, news] = [old.split("\n"), now.split("\n")];
  const [before, after] = [olds.slice(0, COMPARED_LINES_MAX), news.slice(0, COMPARED_LINES_MAX)];
  const left = Math.max(olds.length, news.length) - COMPARED_LINES_MAX;
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  const room = Math.min(before.length, after.length) - head;
  while (tail < room && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const middle = compared(before.slice(head, before.length - tail), after.slice(head, after.length - tail));
  const found = [...before.slice(0, head).map(same), ...middle, ...before.slice(before.length - tail).map(same)];
  if (left <= 0) return found;
  return [uncompared(left), ...found, ...olds.slice(COMPARED_LINES_MAX).map(removed), ...news.slice(COMPARED_LINES_MAX).map(added)];
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
      if (skipped > 0) found.push({ is: "gap", text: `${skipped} lines the same` });
      skipped = 0;
      found.push(line);
    } else skipped += 1;
  });
  if (skipped > 0) found.push({ is: "gap", text: `${skipped} lines the same` });
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

/** On top, where it is seen: changes may lie in there. */
function uncompared(lines: number): Line {
  return { is: "gap", text: `the last ${lines} lines are not compared: all of them follow at the end, old and new` };
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

/** By the longest common subsequence, where that is not too much to look for. */
function compared(before: string[], after: string[]): Line[] {
  const [rows, columns] = [before.length, after.length];
  if (rows * columns > CELLS_MAX) return [...before.map(removed), ...after.map(added)];
  const width = columns + 1;
  const lengths = new Uint16Array((rows + 1) * width);
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      const place = row * width + column;
      lengths[place] =
        before[row] === after[column]
          ? (lengths[place + width + 1] ?? 0) + 1
          : Math.max(lengths[place + width] ?? 0, lengths[place + 1] ?? 0);
    }
  }
  const found: Line[] = [];
  let [row, column] = [0, 0];
  while (row < rows || column < columns) {
    const place = row * width + column;
    if (row < rows && column < columns && before[row] === after[column]) {
      found.push({ is: "same", text: before[row] ?? "" });
      row += 1;
      column += 1;
    } else if (row < rows && (column >= columns || (lengths[place + width] ?? 0) >= (lengths[place + 1] ?? 0))) {
      found.push(removed(before[row] ?? ""));
      row += 1;
    } else {
      found.push(added(after[column] ?? ""));
      column += 1;
    }
  }
  return found;
}
