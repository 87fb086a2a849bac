/** The status of a proposal: a chip of a few words, and a sentence about who decided it. */

import { type Proposal, type ProposalStatus, decidingIn, statusOf } from "../../space/proposals";
import { counted, named } from "../../text";
import { useLive } from "../app/page_state";
import { reasonOf } from "../values/summaries";

const LABELS: Record<ProposalStatus, string> = {
  open: "open",
  approved: "approved, running",
  fulfilled: "fulfilled",
  failed: "failed",
  withdrawn: "withdrawn",
  expired: "expired",
};

export function StatusChip({ proposal }: { proposal: Proposal }) {
  const page = useLive();
  const { space } = page;
  const status = useStatus(proposal);
  const count = proposal.rejections.length;
  const isUndone = ["open", "withdrawn", "expired"].includes(status);
  return (
    <span class={isUndone && count > 0 ? `chip ${status} rejected` : `chip ${status}`} title={storyOf(proposal, status, space.me)}>
      {LABELS[status]}
      {decidingIn(proposal)?.edited === true && ", edited"}
      {page.automatic(proposal) !== null && ", autopilot"}
      {isUndone && count > 0 && `, ${counted(count, "rejection")}`}
    </span>
  );
}

/** The status now; looks at the clock only if time can change it. */
export function useStatus(proposal: Proposal): ProposalStatus {
  const page = useLive();
  return statusOf(proposal, proposal.expiresAt === null ? 0 : page.now.value);
}

/** Who decided, and how, as a sentence without its capital and full stop. */
export function storyOf(proposal: Proposal, status: ProposalStatus, me: string): string {
  const by = (who: string | undefined): string => (who === me ? "you" : named(who ?? "?", 60));
  const deciding = decidingIn(proposal);
  const approved = `approved by ${by(deciding?.by)}${deciding?.edited === true ? " with changes" : ""}`;
  const rejection = proposal.rejections.at(-1);
  const rejected = rejection === undefined ? null : `rejected by ${by(rejection.by)}${rejection.reason === null ? "" : `: ${reasonOf(rejection.reason)}`}`;
  const reason = proposal.withdrawn?.reason ?? null;
  switch (status) {
    case "open":
      return rejected === null ? "no one has decided yet" : `${rejected}; others can still approve it unless the proposer gives up`;
    case "approved":
      return `${approved}; no response yet`;
    case "fulfilled":
      return `${approved} and fulfilled`;
    case "failed":
      return `${approved}, but the call failed`;
    case "withdrawn":
      return `withdrawn by ${by(proposal.proposer)}${reason === null ? "" : `: ${reasonOf(reason)}`}${rejected === null ? "" : ` (${rejected})`}`;
    case "expired":
      return rejected === null ? "expired before anyone decided" : `expired (${rejected})`;
  }
}
