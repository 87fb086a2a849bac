/** Approve and don't ask again: a ladder of rules, from this exact call to its widest sensible form. */

import { useSignal } from "@preact/signals";

import type { Rung } from "../../space/autopilot";
import { toolOf } from "../../space/proposals";
import { counted, visible } from "../../text";
import { useLive } from "../app/page_state";
import { DialogBox } from "../app/dialog";
import { Sentence } from "./sentence";
import { BoundNote, DEFAULT_TERMS, TermsFields, type Terms, termsPayload } from "./terms";

export function LadderDialog({ id }: { id: string }) {
  const page = useLive();
  const proposal = page.space.proposals.get(id);
  const decision = proposal === undefined ? undefined : page.space.autopilot.decision(proposal);
  const chosen = useSignal(0);
  const terms = useSignal<Terms>(DEFAULT_TERMS);
  const ladder = decision?.ladder ?? [];
  const rung = ladder[chosen.value];
  if (proposal === undefined || decision === undefined || rung === undefined) return null;
  const payload = termsPayload(terms.value, new Date());
  const isOpen = page.decisions.canDecide(id);
  const isHere = page.space.participants.get(decision.by)?.here === true;
  const done = (event: Event): void => {
    event.preventDefault();
    if (payload === null || !isOpen) return;
    page.dialog.value = null;
    page.decisions.approve([id], { proposal: id, scope: rung.scope, ...payload });
  };
  return (
    <DialogBox title={`Approve ${visible(toolOf(proposal) ?? proposal.method, 60)} and don't ask again`} wide>
      <form class="form" onSubmit={done}>
        <fieldset class="ladder">
          <legend>Which calls should the autopilot approve from now on?</legend>
          {ladder.map((one, at) => (
            <label key={at} class="choice rung">
              <input
                type="radio"
                name="rung"
                value={String(at)}
                checked={chosen.value === at}
                data-first={at === 0 ? true : undefined}
                onChange={() => (chosen.value = at)}
              />
              <span>
                <small class="dim">{widthOf(at, ladder.length)}</small>
                <span class="rung-sentence">
                  <Sentence text={one.sentence} />
                </span>
                <small class="rung-past">{pastOf(one)}</small>
              </span>
            </label>
          ))}
        </fieldset>
        <TermsFields terms={terms} />
        <BoundNote />
        {!isHere && (
          <p class="warning" role="note">
            {visible(decision.by, 60)} is not connected: the rule takes effect when it is back.
          </p>
        )}
        {!isOpen && (
          <p class="warning" role="note">
            Someone decided this proposal in the meantime.
          </p>
        )}
        <div class="actions">
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          <button type="submit" class="approve" disabled={payload === null || !isOpen}>
            Approve and don't ask again
          </button>
        </div>
      </form>
    </DialogBox>
  );
}

function widthOf(at: number, of: number): string {
  if (at === 0) return "This exact call";
  return at === of - 1 ? "The widest rule" : "Calls like this";
}

/** What the rule would have decided in the past, and its bound if it has earned one. */
function pastOf({ approved, rejected, bound }: Rung): string {
  if (bound !== null) return `${bound}.`;
  if (approved + rejected === 0) return "Nobody has decided about such a call yet, so there is no bound.";
  return `Of the past decisions it covers, ${counted(approved, "approval")} and ${counted(rejected, "rejection")}. No bound yet: it counts from now on.`;
}
