/** The arguments of a call, each as what it is: text as text, a diff as a diff, anything else as a tree. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo } from "preact/hooks";

import { type Json, type JsonObject, isObject } from "../../json";
import { type Line, aroundChanges, compareLines, looksLikeDiff, readDiff } from "../../lines";
import type { Difference } from "../../space/differences";
import { type Operation, argumentsOf, besideCall, toolOf } from "../../space/proposals";
import { count, counted, visible } from "../../text";
import { type Disclosure, useDisclosure, useFolded } from "../review/disclosure";
import { DRAWN_VALUES_MAX, FieldName, JsonText, Leaf, WholeTree } from "./json_view";
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
const ARGUMENTS_FIRST = 100;
const DIFF_LINES_FIRST = 600;
/** A text of more lines is shown as text, not line by line. */
const DIFF_LINES_MAX = 20_000;
/** A text that would be taken for another kind of value, if it were not in quotes. */
const LIKE_NO_TEXT = /^(?:true|false|null|-?\d[\d.eE+-]*)$/;

/** All that a call carries: its arguments as what they are, and what is sent along with them. */
export function Params({ proposal }: { proposal: Operation }) {
  if (toolOf(proposal) === null) return <Arguments values={proposal.params} />;
  const given = argumentsOf(proposal);
  const beside = besideCall(proposal.params);
  return (
    <>
      {given === undefined ? <Arguments values={{}} /> : isObject(given) ? <Arguments values={given} /> : <NoObject value={given} />}
      {Object.keys(beside).length > 0 && <Beside values={beside} />}
    </>
  );
}

export const FOLDED = "Part of this proposal is not shown.";

/** Why it cannot be approved yet, and what to do about that. `then`: the button is gone once everything is there. */
export function MoreThanShown({ disclosure, then }: { disclosure: Disclosure; then?: () => void }) {
  const unfold = (): void => {
    disclosure.showEverything();
    then?.();
  };
  return (
    <p class="folded" role="note">
      {FOLDED}{" "}
      <button type="button" class="small" onClick={unfold}>
        Show everything
      </button>
    </p>
  );
}

/** What a call carries beside its name and arguments. */
export function Beside({ values }: { values: JsonObject }) {
  return (
    <div class="beside">
      <h3>Also sent</h3>
      <Arguments values={values} />
    </div>
  );
}

/** Arguments that are no object: nothing is made of them, they are sent as they are. */
function NoObject({ value }: { value: Json }) {
  return (
    <>
      <p class="warning" role="note">
        The arguments are {kindOf(value)}, but should be an object. They are sent unchanged.
      </p>
      <dl class="arguments">
        <Argument name="arguments" value={value} />
      </dl>
    </>
  );
}

function kindOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "string" ? "a string" : typeof value === "boolean" ? "a boolean" : "a number";
}

export function Arguments({ values }: { values: JsonObject }) {
  const asked = useDisclosure()?.asked.value ?? 0;
  const most = useSignal(ARGUMENTS_FIRST);
  const names = Object.keys(values);
  const pair = pairIn(values);
  const single = names.filter((name) => pair === null || !pair.includes(name));
  const isDrawn = asked === 0 || single.length <= DRAWN_VALUES_MAX;
  const shown = asked > 0 ? single.length : most.value;
  useFolded(isDrawn && single.length > shown);
  if (names.length === 0) return <p class="dim">no arguments</p>;
  if (!isDrawn) return <JsonText value={values} />;
  return (
    <dl class="arguments">
      {single.slice(0, shown).map((name) => (
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
      {single.length > shown && (
        <div class="argument tall">
          <dt>{count(single.length - shown)} more</dt>
          <dd>
            <button type="button" class="quiet" onClick={() => (most.value += ARGUMENTS_FIRST * 4)}>
              Show more arguments
            </button>
          </dd>
        </div>
      )}
    </dl>
  );
}

function Argument({ name, value }: { name: string; value: Json }) {
  const tall = typeof value === "object" ? value !== null : typeof value === "string" && (value.length > SHORT || value.includes("\n"));
  return (
    <div class={tall ? "argument tall" : "argument"}>
      <dt>
        <FieldName name={name} />
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
    if (looksLikeDiff(value) && linesIn(value) <= DIFF_LINES_MAX) return <Diff text={value} />;
    if (value.length > SHORT || value.includes("\n")) return <LongText text={value} class="block" />;
    if (LIKE_NO_TEXT.test(value)) return <Leaf value={value} />;
    return value === "" ? <span class="dim">empty string</span> : <code><Words text={value} /></code>;
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
  if (typeof value === "object" && value !== null) return <WholeTree value={value} />;
  return <Leaf value={value} />;
}

// The card is drawn anew whenever something came; to compare long texts takes longer than all the rest of it.
function Compared({ old, now }: { old: string; now: string }) {
  const lines = useMemo(() => compareLines(old, now), [old, now]);
  return <DiffView lines={lines} isCompared />;
}

function Diff({ text }: { text: string }) {
  return <DiffView lines={useMemo(() => readDiff(text), [text])} />;
}

/** `isCompared`: lines that are the same on both sides may be left out at first. */
function DiffView({ lines, isCompared = false }: { lines: Line[]; isCompared?: boolean }) {
  const disclosure = useDisclosure();
  const asked = disclosure?.asked.value ?? 0;
  const isWhole = useSignal(false);
  useLayoutEffect(() => {
    if (asked > 0) isWhole.value = true;
  }, [asked]);
  const isShort = lines.length <= DIFF_LINES_FIRST;
  const brief = useMemo(() => (isCompared ? aroundChanges(lines) : lines), [lines]);
  const shown = isWhole.value || (disclosure !== null && isShort) ? lines : brief.slice(0, DIFF_LINES_FIRST);
  const isFolded = shown.length < lines.length || shown.some((line, at) => line !== lines[at]);
  useFolded(isFolded);
  const marks: Record<Line["is"], string> = { added: "+", removed: "−", same: " ", place: "", file: "", gap: "⋯" };
  return (
    <div class="diff" role="group" aria-label="changes, line by line" tabIndex={0}>
      {shown.map((line, at) => (
        <div key={at} class={`line ${line.is}`}>
          <span class="mark">
            {marks[line.is]}
            {line.is === "added" && <span class="aloud">added: </span>}
            {line.is === "removed" && <span class="aloud">removed: </span>}
          </span>
          {line.words !== undefined ? (
            <span>
              {line.words.map(({ text, isChanged }, place) => (isChanged ? <mark key={place}><Words text={text} /></mark> : <Words key={place} text={text} />))}
            </span>
          ) : line.text.length > LINE ? (
            <LongText text={line.text} first={LINE} />
          ) : (
            <Words text={line.text} />
          )}
        </div>
      ))}
      {isFolded && (
        <button type="button" class="quiet" onClick={() => (isWhole.value = true)}>
          Show all {count(lines.length)} lines
        </button>
      )}
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
          <DiffView lines={linesOf(change)} isCompared />
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

/** Two texts of which one is to take the place of the other, where they are not too long to be compared. */
function pairIn(values: JsonObject): [string, string] | null {
  return PAIRS.find((pair) => pair.every((name) => isComparable(values[name]))) ?? null;
}

function isComparable(value: Json | undefined): boolean {
  return typeof value === "string" && linesIn(value) <= DIFF_LINES_MAX;
}

function linesIn(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

function sizeOf(text: string): string {
  const lines = linesIn(text);
  return lines > 1 ? `${count(lines)} lines` : counted(text.length, "character");
}
