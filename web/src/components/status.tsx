/** Where a proposal stands, as a chip of one word and its story in a few. */

import { type Proposal, type ProposalStatus, statusOf } from "../space/proposals";
import { visible } from "../text";
import { useLive } from "./desk";
import { reasonOf } from "./summaries";

const WORDS: Record<ProposalStatus, string> = {
  open: "waiting",
  approved: "approved, under way",
  fulfilled: "done",
  failed: "failed",
  rejected: "rejected",
  withdrawn: "withdrawn",
  timed_out: "timed out",
};

export function StatusChip({ proposal }: { proposal: Proposal }) {
  useLive();
  const status = statusOf(proposal);
  const edited = proposal.fulfilments[0]?.edited === true;
  return (
    <span class={`chip ${status}`} title={storyOf(proposal)}>
      {WORDS[status]}
      {edited && ", changed"}
      {status === "open" && proposal.rejections.length > 0 && `, ${proposal.rejections.length} said no`}
    </span>
  );
}

/** Who decided, and how. */
export function storyOf(proposal: Proposal): string {
  const first = proposal.fulfilments[0];
  const no = proposal.rejections.at(-1);
  const by = (who: string): string => visible(who, 60);
  switch (statusOf(proposal)) {
    case "open":
      return no === undefined ? "nobody has decided" : `${by(no.by)} said no${no.reason === null ? "" : `: ${reasonOf(no.reason)}`}`;
    case "approved":
      return `approved by ${by(first?.by ?? "?")}${first?.edited === true ? ", with changes" : ""}; no answer yet`;
    case "fulfilled":
      return `approved by ${by(first?.by ?? "?")}${first?.edited === true ? ", with changes" : ""}, and done`;
    case "failed":
      return `approved by ${by(first?.by ?? "?")}, and it failed`;
    case "rejected":
      return `rejected by ${by(no?.by ?? "?")}${no?.reason == null ? "" : `: ${reasonOf(no.reason)}`}`;
    case "withdrawn":
      return `taken back by ${by(proposal.proposer)}${proposal.withdrawn?.reason == null ? "" : `: ${reasonOf(proposal.withdrawn.reason)}`}`;
    case "timed_out":
      return "nobody decided in time";
  }
}
