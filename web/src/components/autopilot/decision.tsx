/** What the autopilot decided about a proposal: why it asks, or which rule it followed and how to object. */

import type { Proposal } from "../../space/proposals";
import { visible } from "../../text";
import { type PageState, useLive } from "../app/page_state";
import { Who } from "../values/text_view";
import { Sentence } from "./sentence";

/** Why a person is asked; on the card, above the buttons. */
export function AskedBecause({ proposal }: { proposal: Proposal }) {
  const { space } = useLive();
  const decision = space.autopilot.decision(proposal);
  if (decision === undefined || decision.verdict === "fulfil") return null;
  const begin = { ask: "You are asked because", audit: "You are asked although a rule covers this:", shadow: "In shadow mode. A rule would approve this:" };
  return (
    <p class="asked-because">
      <span>
        {begin[decision.verdict]} <Sentence text={decision.why} />.
      </span>{" "}
      {decision.rule !== null && <RuleLink id={decision.rule} />}
    </p>
  );
}

/** Opens the rule in the list of rules. */
export function RuleLink({ id }: { id: string }) {
  const page = useLive();
  if (page.space.autopilot.rule(id) === undefined) return null;
  return (
    <button type="button" class="quiet rule-link" onClick={() => showRule(page, id)}>
      Show rule {visible(id, 20)}
    </button>
  );
}

export function showRule(page: PageState, id: string): void {
  page.dialog.value = null;
  page.rule.value = id;
  page.pane.value = "autopilot";
}

/** Whether there are rules to choose from for this proposal, and I may activate one. */
export function mayRatify(page: PageState, proposal: Proposal): boolean {
  const { space } = page;
  const ladder = space.autopilot.decision(proposal)?.ladder ?? [];
  return ladder.length > 0 && space.mayApprove(proposal) && page.may({ kind: "autopilot/ratify", payload: { proposal: proposal.id } });
}

/** Marks a decision that no person made, with the way to object; nothing if a person made it. */
export function Automatic({ proposal }: { proposal: Proposal }) {
  const page = useLive();
  const found = page.automatic(proposal);
  if (found === null) return null;
  const { rule, objectedBy, bound } = found;
  const order = { kind: "autopilot/object", correlation_id: [proposal.id], payload: { proposal: proposal.id } };
  return (
    <span class="automatic">
      <span class="chip automatic-chip" title={bound ?? undefined}>
        decided by the autopilot{rule !== null && `, rule ${visible(rule, 20)}`}
      </span>{" "}
      {rule !== null && <RuleLink id={rule} />}{" "}
      {objectedBy !== null ? (
        <span class="dim">
          <Who id={objectedBy} /> objected: this should have been asked.
        </span>
      ) : (
        page.may(order) && (
          <button
            type="button"
            class="small"
            title="The rule that decided this stops deciding and has to earn its evidence again."
            onClick={() => void page.send(order).then((sent) => sent !== null && page.tell("Objected. The rule no longer decides such calls alone."))}
          >
            This should have been asked
          </button>
        )
      )}
    </span>
  );
}
