/** The arguments of a call, each as what it is: text as text, a diff as a diff, anything else as a tree. */

import { useMemo } from "preact/hooks";

import { type Json, type JsonObject, isObject } from "../json";
import { type Line, compareLines, looksLikeDiff, readDiff } from "../lines";
import type { Difference } from "../space/differences";
import { count, counted, visible } from "../text";
import { JsonTree, Leaf } from "./json_view";
import { LongText, Words } from "./text_view";

const PAIRS: [old: string, now: string][] = [
  ["old_string", "new_string"],
  ["old_str", "new_str"],
  ["oldText", "newText"],
  ["old_text", "new_text"],
  ["before", "after"],
];
const SHORT = 100;
const LINE = 1_000;

export function Arguments({ values }: { values: JsonObject }) {
  const names = Object.keys(values);
  if (names.length === 0) return <p class="dim">without arguments</p>;
  const pair = pairIn(values);
  return (
    <dl class="arguments">
      {names
        .filter((name) => pair === null || !pair.includes(name))
        .slice(0, 100)
        .map((name) => (
          <Argument key={name} name={name} value={values[name] ?? null} />
        ))}
      {pair !== null && (
        <div class="argument tall">
          <dt>
            {pair[0]} → {pair[1]}
          </dt>
          <dd>
            <Compared old={String(values[pair[0]])} now={String(values[pair[1]])} />
          </dd>
        </div>
      )}
      {names.length > 100 && <p>and {count(names.length - 100)} more: see the raw JSON</p>}
    </dl>
  );
}

function Argument({ name, value }: { name: string; value: Json }) {
  const tall = typeof value === "object" ? value !== null : typeof value === "string" && (value.length > SHORT || value.includes("\n"));
  return (
    <div class={tall ? "argument tall" : "argument"}>
      <dt>
        {visible(name, 120)}
        {typeof value === "string" && tall && <small> {sizeOf(value)}</small>}
      </dt>
      <dd>
        <Value value={value} />
      </dd>
    </div>
  );
}

function Value({ value }: { value: Json }) {
  if (typeof value === "string") {
    if (looksLikeDiff(value)) return <Diff text={value} />;
    if (value.length > SHORT || value.includes("\n")) return <LongText text={value} class="block" />;
    return value === "" ? <span class="dim">empty text</span> : <code><Words text={value} /></code>;
  }
  if (Array.isArray(value) && value.length > 0 && value.length <= 50 && value.every((item) => isObject(item) && pairIn(item) !== null)) {
    return (
      <>
        {value.map((item, at) => (
          <Arguments key={at} values={item as JsonObject} />
        ))}
      </>
    );
  }
  if (typeof value === "object" && value !== null) return <JsonTree value={value} open={2} />;
  return <Leaf value={value} />;
}

// The card is drawn anew whenever something came; to compare long texts takes longer than all the rest of it.
function Compared({ old, now }: { old: string; now: string }) {
  return <DiffView lines={useMemo(() => compareLines(old, now), [old, now])} />;
}

function Diff({ text }: { text: string }) {
  return <DiffView lines={useMemo(() => readDiff(text), [text])} />;
}

function DiffView({ lines }: { lines: Line[] }) {
  const marks: Record<Line["is"], string> = { added: "+", removed: "−", same: " ", place: "", file: "", gap: "⋯" };
  return (
    <div class="diff" role="group" aria-label="what changes, line by line" tabIndex={0}>
      {lines.slice(0, 600).map((line, at) => (
        <div key={at} class={`line ${line.is}`}>
          <span class="mark">
            {marks[line.is]}
            {line.is === "added" && <span class="aloud">added: </span>}
            {line.is === "removed" && <span class="aloud">removed: </span>}
          </span>
          {line.text.length > LINE ? <LongText text={line.text} first={LINE} /> : <Words text={line.text} />}
        </div>
      ))}
      {lines.length > 600 && <div class="line gap">{count(lines.length - 600)} more lines: see the raw JSON</div>}
    </div>
  );
}

/** What somebody changed in what was proposed. */
export function Changes({ changes }: { changes: Difference[] }) {
  return (
    <ul class="changes">
      {changes.map((change) => (
        <li key={change.path}>
          <code>{visible(change.path.replace(/^params\.(arguments\.)?/, ""), 120)}</code>
          <DiffView lines={linesOf(change)} />
        </li>
      ))}
    </ul>
  );
}

/** What was not there before is added, and no empty line removed. */
function linesOf({ old, new: now }: Difference): Line[] {
  const whole = (is: "added" | "removed", value: Json | undefined): Line[] => asLines(value).split("\n").map((text) => ({ is, text }));
  if (old === undefined) return whole("added", now);
  return now === undefined ? whole("removed", old) : compareLines(asLines(old), asLines(now));
}

function asLines(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

function pairIn(values: JsonObject): [string, string] | null {
  return PAIRS.find(([old, now]) => typeof values[old] === "string" && typeof values[now] === "string") ?? null;
}

function sizeOf(text: string): string {
  const lines = text.split("\n").length;
  return lines > 1 ? `${count(lines)} lines` : counted(text.length, "character");
}
