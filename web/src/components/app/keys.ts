/** The keys, in one table: what does something, and what `?` shows, cannot differ. */

import type { Envelope } from "../../envelope";
import { toolOf } from "../../space/proposals";
import { focusField } from "../review/answers";
import { mayRatify } from "../autopilot/decision";
import type { PageState, Pane } from "./page_state";
import { rowPasses } from "../stream/filter";
import { focusOn, focusPane } from "./focus";
import { follow } from "../stream/row_view";

interface Key {
  keys: string[];
  shown: string;
  words: string;
  act(page: PageState): void;
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
  { keys: ["j", "ArrowDown"], shown: "j  ↓", words: "next item in the waiting list", act: (page) => move(page, 1) },
  { keys: ["k", "ArrowUp"], shown: "k  ↑", words: "previous item in the waiting list", act: (page) => move(page, -1) },
  { keys: ["a"], shown: "a", words: "approve the proposal or all selected ones; accept a question", act: approve },
  { keys: ["A"], shown: "A", words: "approve and choose a rule, so that such calls are not asked about again", act: approveAlways },
  { keys: ["e"], shown: "e", words: "edit and approve; fill in the answer to a question", act: edit },
  { keys: ["r"], shown: "r", words: "reject the proposal or all selected ones; decline a question", act: reject },
  { keys: ["l"], shown: "l", words: "dismiss a question without answering", act: leave },
  { keys: ["x"], shown: "x", words: "select, to decide several at once", act: pick },
  { keys: ["u"], shown: "u", words: "undo a decision within three seconds", act: undo },
  { keys: ["g"], shown: "g", words: "show the chain: proposal, decisions, request and response", act: chain },
  { keys: ["n"], shown: "n", words: "stream: next row", act: (page) => step(page, 1) },
  { keys: ["p"], shown: "p", words: "stream: previous row", act: (page) => step(page, -1) },
  { keys: ["t"], shown: "t", words: "stream: show only the thread of the row; press again to show everything", act: thread },
  { keys: ["v"], shown: "v", words: "show the raw JSON of the row or proposal", act: raw },
  { keys: ["c"], shown: "c", words: "write a message", act: (page) => focus(page, "say") },
  { keys: ["/"], shown: "/", words: "search the stream", act: (page) => focus(page, "filter-text") },
  { keys: ["h"], shown: "h", words: "open the history", act: (page) => (page.dialog.value = { is: "history" }) },
  { keys: ["b"], shown: "b", words: "return to the live stream", act: (page) => page.history.toNow() },
  { keys: ["1"], shown: "1", words: "show the waiting list", act: (page) => look(page, "waiting") },
  { keys: ["2"], shown: "2", words: "show the stream", act: (page) => look(page, "stream") },
  { keys: ["3"], shown: "3", words: "show the timeline", act: (page) => look(page, "timeline") },
  { keys: ["4"], shown: "4", words: "show the autopilot and its rules", act: (page) => look(page, "autopilot") },
  { keys: ["5"], shown: "5", words: "show the participants", act: (page) => look(page, "people") },
  { keys: ["d"], shown: "d", words: "switch between light, dark and system theme", act: (page) => page.settings.nextTheme() },
  { keys: ["?"], shown: "?", words: "show these shortcuts", act: (page) => (page.dialog.value = { is: "keys" }) },
];

/** Listen to the keyboard; returns what ends that. */
export function listenToKeys(page: PageState): () => void {
  const pressed = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || page.dialog.value !== null) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape" && event.target instanceof HTMLElement) event.target.blur();
      return;
    }
    if (event.key.startsWith("Arrow") && scrollsItself(event.target)) return;
    const key = KEYS.find((one) => one.keys.includes(event.key));
    if (key === undefined) return;
    event.preventDefault();
    key.act(page);
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

function move(page: PageState, by: number): void {
  const waiting = page.waiting.value;
  if (waiting.length === 0) return;
  page.pane.value = "waiting";
  const at = waiting.findIndex((proposal) => proposal.id === page.decisions.selected.value);
  const asked = by > 0 && page.decisions.hasMovedOn ? at : at + by; // it moved by itself just now: that was meant
  const next = at < 0 ? 0 : Math.min(waiting.length - 1, Math.max(0, asked));
  page.decisions.select(waiting[next]?.id ?? null);
}

/** What a decision is about; where that is nothing, it is said why. */
function aimed(page: PageState): string[] {
  const { aimed: found, guarded, selected } = page.decisions;
  if (found.length > 0) return found;
  const others = page.waiting.value.some(({ id }) => page.decisions.canDecide(id));
  if (guarded.value) page.tell("Nothing was decided: this item has only just appeared. Review it and press the key again.");
  else if (!others) page.tell("Nothing is waiting for a decision.");
  else page.tell(selected.value === null ? "Select an item first: press j." : "This one is already decided: press j for the next.");
  return [];
}

function leave(page: PageState): void {
  const { question } = page.decisions;
  if (question !== undefined) page.answers.cancel(question);
  else if (aimed(page).length > 0) page.tell("Only questions can be dismissed without a decision.");
}

function approve(page: PageState): void {
  const { question } = page.decisions;
  if (question !== undefined) {
    page.answers.accept(question);
    return;
  }
  page.decisions.approve(aimed(page));
}

function approveAlways(page: PageState): void {
  const [id] = aimed(page);
  const proposal = page.space.proposals.get(id ?? "");
  if (id === undefined || proposal === undefined) return;
  if (!mayRatify(page, proposal)) page.tell("The autopilot offers no rule for this proposal, or you may not accept rules.");
  else if (!page.decisions.isShown(proposal)) page.tell("Part of it is not shown. Choose “Show everything” first.");
  else page.dialog.value = { is: "ladder", proposal: id };
}

function edit(page: PageState): void {
  const [id] = aimed(page);
  const proposal = page.space.proposals.get(id ?? "");
  if (page.decisions.question !== undefined) focusField();
  if (proposal === undefined) return;
  if (toolOf(proposal) === null) {
    page.tell("Only tool calls can be edited. Approve it as proposed or reject it.");
    return;
  }
  const to = page.decisions.targets(proposal);
  if (to.length > 0 && page.space.mayApprove(proposal)) page.dialog.value = { is: "edit", proposal: proposal.id, to };
  else page.tell("Choose a participant to send it to first, or reject it: you may not approve it as it is.");
}

function reject(page: PageState): void {
  const { question } = page.decisions;
  const proposals = aimed(page);
  if (question !== undefined) page.answers.decline(question);
  else if (proposals.length > 0) page.dialog.value = { is: "reject", proposals };
}

function undo(page: PageState): void {
  if (!page.decisions.undo()) page.tell("There is nothing to undo.");
}

function pick(page: PageState): void {
  const id = page.decisions.selected.value;
  if (id !== null) page.decisions.toggleMark(id);
}

function chain(page: PageState): void {
  const id = page.decisions.selected.value;
  if (id !== null && page.space.proposals.get(id) !== undefined) page.dialog.value = { is: "chain", proposal: id };
}

/** The envelope that the keyboard is at: of the row in the stream, or else the proposal. */
function reached(page: PageState): Envelope | undefined {
  const space = page.past.value ?? page.space;
  const id = page.row.value ?? page.decisions.selected.value;
  const row = id === null ? undefined : space.rows.of(id);
  const envelope = row === undefined ? undefined : [row.envelope, ...row.folded].find((one) => one.id === id);
  if (envelope === undefined) page.tell("Select a row with n or p first.");
  return envelope;
}

function raw(page: PageState): void {
  const envelope = reached(page);
  if (envelope !== undefined) page.dialog.value = { is: "raw", envelope };
}

function thread(page: PageState): void {
  if (page.filter.value.thread !== null) {
    page.filter.value = { ...page.filter.value, thread: null };
    return;
  }
  const envelope = reached(page);
  if (envelope === undefined) return;
  page.pane.value = "stream";
  follow(page, page.past.value ?? page.space, envelope);
}

/** To the next row that the filter lets through. */
function step(page: PageState, by: number): void {
  const { list } = (page.past.value ?? page.space).rows;
  const found = list.findIndex((row) => row.envelope.id === page.row.value);
  let at = (found < 0 ? list.length : found) + by;
  let row = list[at];
  while (row !== undefined && !rowPasses(page.filter.value, row)) row = list[(at += by)];
  if (row === undefined) return;
  page.pane.value = "stream";
  page.row.value = row.envelope.id;
  page.goTo.value = row.envelope.id;
}

function look(page: PageState, pane: Pane): void {
  page.pane.value = pane;
  focusPane(pane);
}

function focus(page: PageState, id: string): void {
  if (page.pane.value !== "stream") page.pane.value = "stream";
  focusOn(`#${id}`);
}
