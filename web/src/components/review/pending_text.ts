/** Describes decisions that are about to be sent. */

import { toolOf } from "../../space/proposals";
import type { AnswerAction } from "../../space/questions";
import { visible } from "../../text";
import type { Pending } from "./decisions";
import type { Desk } from "../app/desk";

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
  if (lacking === "connection") return ", once you are connected again";
  return `, once ${visible(lacking.join(", "), 80)} ${lacking.length === 1 ? "is" : "are"} connected`;
}

function describeDecision(pending: Pending, desk: Desk): string {
  if (pending.decision.is === "answer") return answering(pending, desk, pending.decision.action);
  const first = desk.space.proposals.get(pending.ids[0] ?? "");
  const what = pending.ids.length > 1 || first === undefined ? `${pending.ids.length} proposals` : visible(toolOf(first) ?? first.method, 80);
  if (pending.decision.is === "reject") return `Rejecting ${what}`;
  if (pending.decision.rule !== undefined) return `Approving ${what} and adding a rule`;
  return pending.decision.params === undefined ? `Approving ${what}` : `Approving ${what} with your changes`;
}

function answering(pending: Pending, desk: Desk, action: AnswerAction): string {
  const asker = visible(desk.space.questions.get(pending.ids[0] ?? "")?.asker ?? "someone", 60);
  if (action === "accept") return `Answering ${asker}`;
  return action === "decline" ? `Declining the question from ${asker}` : `Dismissing the question from ${asker}`;
}
