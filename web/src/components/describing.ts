/** What is on its way, in a few words. */

import { toolOf } from "../space/proposals";
import type { AnswerAction } from "../space/questions";
import { visible } from "../text";
import type { Pending } from "./decisions";
import type { Desk } from "./desk";

/** In a few words, for the line that offers to undo. */
export function describe(pending: Pending, desk: Desk): string {
  return describeDecision(pending, desk) + (pending.is === "held" ? whatIsLacking(pending, desk) : "");
}

/** As people come and go. */
function whatIsLacking(pending: Pending, desk: Desk): string {
  desk.state.value;
  desk.pulse.value;
  const lacking = desk.decisions.lacking(pending);
  if (lacking === null) return "";
  if (lacking === "connection") return ", once the connection is back";
  return `, once ${visible(lacking.join(", "), 80)} ${lacking.length === 1 ? "is" : "are"} here`;
}

function describeDecision(pending: Pending, desk: Desk): string {
  if (pending.decision.is === "answer") return answering(pending, desk, pending.decision.action);
  const first = desk.space.proposals.get(pending.ids[0] ?? "");
  const what = pending.ids.length > 1 || first === undefined ? `${pending.ids.length} proposals` : visible(toolOf(first) ?? first.method, 80);
  if (pending.decision.is === "reject") return `Rejecting ${what}`;
  return pending.decision.params === undefined ? `Approving ${what}` : `Approving ${what}, as you changed it`;
}

function answering(pending: Pending, desk: Desk, action: AnswerAction): string {
  const asker = visible(desk.space.questions.get(pending.ids[0] ?? "")?.asker ?? "somebody", 60);
  if (action === "accept") return `Answering ${asker}`;
  return action === "decline" ? `Declining what ${asker} asks` : `Leaving what ${asker} asks`;
}
