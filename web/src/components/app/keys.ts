/** The keys, in one table: what does something, and what `?` shows, cannot differ. */

import type { Envelope } from "../../envelope";
import { toolOf } from "../../space/proposals";
import { focusField } from "../review/answers";
import { mayRatify } from "../autopilot/decision";
import type { Desk, Pane } from "./desk";
import { rowPasses } from "../stream/filter";
import { focusOn, focusPane } from "./focus";
import { follow } from "../stream/row_view";

interface Key {
  keys: string[];
  shown: string;
  words: string;
  act(desk: Desk): void;
}

/** Keys that a part of the page, or the browser, has of itself. */
export const KEYS_WITHIN: Omit<Key, "keys" | "act">[] = [
  { shown: "←  →", words: "timeline: previous or next event in the lane" },
  { shown: "↑  ↓", words: "timeline: previous or next lane" },
  { shown: "Home", words: "timeline: first event in the lane" },
  { shown: "End", words: "timeline: last event in the lane" },
  { shown: "Enter", words: "timeline: show the event in the stream" },
  { shown: "Ctrl+Enter", words: "submit a form; Enter is enough in a single-line field" },
  { shown: "Tab", words: "move to the next control" },
  { shown: "Esc", words: "close a dialog or leave a field" },
];

export const KEYS: Key[] = [
  { keys: ["j", "ArrowDown"], shown: "j  ↓", words: "next item in the waiting list", act: (desk) => move(desk, 1) },
  { keys: ["k", "ArrowUp"], shown: "k  ↑", words: "previous item in the waiting list", act: (desk) => move(desk, -1) },
  { keys: ["a"], shown: "a", words: "approve the proposal or all selected ones; accept a question", act: approve },
  { keys: ["A"], shown: "A", words: "approve and choose a rule, so that such calls are not asked about again", act: approveAlways },
  { keys: ["e"], shown: "e", words: "edit and approve; fill in the answer to a question", act: edit },
  { keys: ["r"], shown: "r", words: "reject the proposal or all selected ones; decline a question", act: reject },
  { keys: ["l"], shown: "l", words: "dismiss a question without answering", act: leave },
  { keys: ["x"], shown: "x", words: "select, to decide several at once", act: pick },
  { keys: ["u"], shown: "u", words: "undo a decision within three seconds", act: undo },
  { keys: ["g"], shown: "g", words: "show the chain: proposal, decisions, request and response", act: chain },
  { keys: ["n"], shown: "n", words: "stream: next row", act: (desk) => step(desk, 1) },
  { keys: ["p"], shown: "p", words: "stream: previous row", act: (desk) => step(desk, -1) },
  { keys: ["t"], shown: "t", words: "stream: show only the thread of the row; press again to show everything", act: thread },
  { keys: ["v"], shown: "v", words: "show the raw JSON of the row or proposal", act: raw },
  { keys: ["c"], shown: "c", words: "write a message", act: (desk) => focus(desk, "say") },
  { keys: ["/"], shown: "/", words: "search the stream", act: (desk) => focus(desk, "filter-text") },
  { keys: ["h"], shown: "h", words: "open the history", act: (desk) => (desk.dialog.value = { is: "history" }) },
  { keys: ["b"], shown: "b", words: "return to the live stream", act: (desk) => desk.history.toNow() },
  { keys: ["1"], shown: "1", words: "show the waiting list", act: (desk) => look(desk, "waiting") },
  { keys: ["2"], shown: "2", words: "show the stream", act: (desk) => look(desk, "stream") },
  { keys: ["3"], shown: "3", words: "show the timeline", act: (desk) => look(desk, "timeline") },
  { keys: ["4"], shown: "4", words: "show the autopilot and its rules", act: (desk) => look(desk, "autopilot") },
  { keys: ["5"], shown: "5", words: "show the participants", act: (desk) => look(desk, "people") },
  { keys: ["d"], shown: "d", words: "switch between light, dark and system theme", act: (desk) => desk.settings.nextTheme() },
  { keys: ["?"], shown: "?", words: "show these shortcuts", act: (desk) => (desk.dialog.value = { is: "keys" }) },
];

/** Listen to the keyboard; returns what ends that. */
export function listenToKeys(desk: Desk): () => void {
  const pressed = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || desk.dialog.value !== null) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape" && event.target instanceof HTMLElement) event.target.blur();
      return;
    }
    if (event.key.startsWith("Arrow") && scrollsItself(event.target)) return;
    const key = KEYS.find((one) => one.keys.includes(event.key));
    if (key === undefined) return;
    event.preventDefault();
    key.act(desk);
  };
  window.addEventListener("keydown", pressed);
  return () => window.removeEventListener("keydown", pressed);
}

function scrollsItself(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(".rows, .lanes, .long-text, .diff") !== null;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

function move(desk: Desk, by: number): void {
  const waiting = desk.waiting.value;
  if (waiting.length === 0) return;
  desk.pane.value = "waiting";
  const at = waiting.findIndex((proposal) => proposal.id === desk.decisions.selected.value);
  const asked = by > 0 && desk.decisions.hasMovedOn ? at : at + by; // it moved by itself just now: that was meant
  const next = at < 0 ? 0 : Math.min(waiting.length - 1, Math.max(0, asked));
  desk.decisions.select(waiting[next]?.id ?? null);
}

/** What a decision is about; where that is nothing, it is said why. */
function aimed(desk: Desk): string[] {
  const { aimed: found, guarded, selected } = desk.decisions;
  if (found.length > 0) return found;
  const others = desk.waiting.value.some(({ id }) => desk.decisions.canDecide(id));
  if (guarded.value) desk.tell("Nothing was decided: this item has only just appeared. Review it and press the key again.");
  else if (!others) desk.tell("Nothing is waiting for a decision.");
  else desk.tell(selected.value === null ? "Select an item first: press j." : "This one is already decided: press j for the next.");
  return [];
}

function leave(desk: Desk): void {
  const { question } = desk.decisions;
  if (question !== undefined) desk.answers.cancel(question);
  else if (aimed(desk).length > 0) desk.tell("Only questions can be dismissed without a decision.");
}

function approve(desk: Desk): void {
  const { question } = desk.decisions;
  if (question !== undefined) {
    desk.answers.accept(question);
    return;
  }
  desk.decisions.approve(aimed(desk));
}

function approveAlways(desk: Desk): void {
  const [id] = aimed(desk);
  const proposal = desk.space.proposals.get(id ?? "");
  if (id === undefined || proposal === undefined) return;
  if (!mayRatify(desk, proposal)) desk.tell("The autopilot offers no rule for this proposal, or you may not accept rules.");
  else if (!desk.decisions.isShown(proposal)) desk.tell("Part of it is not shown. Choose “Show everything” first.");
  else desk.dialog.value = { is: "ladder", proposal: id };
}

function edit(desk: Desk): void {
  const [id] = aimed(desk);
  const proposal = desk.space.proposals.get(id ?? "");
  if (desk.decisions.question !== undefined) focusField();
  if (proposal === undefined) return;
  if (toolOf(proposal) === null) {
    desk.tell("Only tool calls can be edited. Approve it as proposed or reject it.");
    return;
  }
  const to = desk.decisions.targets(proposal);
  if (to.length > 0 && desk.space.mayApprove(proposal)) desk.dialog.value = { is: "edit", proposal: proposal.id, to };
  else desk.tell("Choose a participant to send it to first, or reject it: you may not approve it as it is.");
}

function reject(desk: Desk): void {
  const { question } = desk.decisions;
  const proposals = aimed(desk);
  if (question !== undefined) desk.answers.decline(question);
  else if (proposals.length > 0) desk.dialog.value = { is: "reject", proposals };
}

function undo(desk: Desk): void {
  if (!desk.decisions.undo()) desk.tell("There is nothing to undo.");
}

function pick(desk: Desk): void {
  const id = desk.decisions.selected.value;
  if (id !== null) desk.decisions.toggleMark(id);
}

function chain(desk: Desk): void {
  const id = desk.decisions.selected.value;
  if (id !== null && desk.space.proposals.get(id) !== undefined) desk.dialog.value = { is: "chain", proposal: id };
}

/** The envelope that the keyboard is at: of the row in the stream, or else the proposal. */
function reached(desk: Desk): Envelope | undefined {
  const space = desk.past.value ?? desk.space;
  const id = desk.row.value ?? desk.decisions.selected.value;
  const row = id === null ? undefined : space.rows.of(id);
  const envelope = row === undefined ? undefined : [row.envelope, ...row.folded].find((one) => one.id === id);
  if (envelope === undefined) desk.tell("Select a row with n or p first.");
  return envelope;
}

function raw(desk: Desk): void {
  const envelope = reached(desk);
  if (envelope !== undefined) desk.dialog.value = { is: "raw", envelope };
}

function thread(desk: Desk): void {
  if (desk.filter.value.thread !== null) {
    desk.filter.value = { ...desk.filter.value, thread: null };
    return;
  }
  const envelope = reached(desk);
  if (envelope === undefined) return;
  desk.pane.value = "stream";
  follow(desk, desk.past.value ?? desk.space, envelope);
}

/** To the next row that the filter lets through. */
function step(desk: Desk, by: number): void {
  const { list } = (desk.past.value ?? desk.space).rows;
  const found = list.findIndex((row) => row.envelope.id === desk.row.value);
  let at = (found < 0 ? list.length : found) + by;
  let row = list[at];
  while (row !== undefined && !rowPasses(desk.filter.value, row)) row = list[(at += by)];
  if (row === undefined) return;
  desk.pane.value = "stream";
  desk.row.value = row.envelope.id;
  desk.goTo.value = row.envelope.id;
}

function look(desk: Desk, pane: Pane): void {
  desk.pane.value = pane;
  focusPane(pane);
}

function focus(desk: Desk, id: string): void {
  if (desk.pane.value !== "stream") desk.pane.value = "stream";
  focusOn(`#${id}`);
}
