/** Describes decisions that are about to be sent. */

import { toolOf } from "../../space/proposals";
import type { AnswerAction } from "../../space/questions";
import { visible } from "../../text";
import type { Pending } from "./decisions";
import type { PageState } from "../app/page_state";

/** In a few words, for the line that offers to undo. */
export function describe(pending: Pending, page: PageState): string {
  return describeDecision(pending, page) + (pending.is === "held" ? whatIsLacking(pending, page) : "");
}

/** As people come and go. */
function whatIsLacking(pending: Pending, page: PageState): string {
  page.state.value;
  page.pulse.value;
  const lacking = page.decisions.lacking(pending);
  if (lacking === null) return "";
  if (lacking === "connection") return ", once you are connected again";
  return `, once ${visible(lacking.join(", "), 80)} ${lacking.length === 1 ? "is" : "are"} connected`;
}

function describeDecision(pending: Pending, page: PageState): string {
  if (pending.decision.is === "answer") return answering(pending, page, pending.decision.action);
  const first = page.space.proposals.get(pending.ids[0] ?? "");
  const what = pending.ids.length > 1 || first === undefined ? `${pending.ids.length} proposals` : visible(toolOf(first) ?? first.method, 80);
  if (pending.decision.is === "reject") return `Rejecting ${what}`;
  if (pending.decision.rule !== undefined) return `Approving ${what} and adding a rule`;
  return pending.decision.params === undefined ? `Approving ${what}` : `Approving ${what} with your changes`;
}

function answering(pending: Pending, page: PageState, action: AnswerAction): string {
  const asker = visible(page.space.questions.get(pending.ids[0] ?? "")?.asker ?? "someone", 60);
  if (action === "accept") return `Answering ${asker}`;
  return action === "decline" ? `Declining the question from ${asker}` : `Dismissing the question from ${asker}`;
}
