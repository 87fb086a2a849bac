/** What people and agents say about a proposal: the proposer's claim, its reasoning, and rejections with their words. */

import { useSignal } from "@preact/signals";

import { textIn } from "../../space/fields";
import type { Proposal, Rejection } from "../../space/proposals";
import { visible } from "../../text";
import { useLive } from "../app/page_state";
import { reasonOf } from "../values/summaries";
import { Ago, LongText, Who, Words } from "../values/text_view";

const REMARKS_SHOWN = 3;
const REJECTIONS_SHOWN = 8;
const STEPS_SHOWN = 60;

/** Why it was proposed: the proposer's own words; only if there are none, its reasoning about this proposal. */
export function Why({ proposal }: { proposal: Proposal }) {
  const { space } = useLive();
  const hasReasoning = proposal.why === null && space.reasonings.about(proposal) !== undefined;
  const remarks = proposal.remarks.slice(-REMARKS_SHOWN);
  if (proposal.why === null && !hasReasoning && remarks.length === 0) return null;
  return (
    <div class="why">
      <h3>Why</h3>
      {proposal.why !== null && <Claim proposal={proposal} why={proposal.why} />}
      {hasReasoning && <Reasoned proposal={proposal} />}
      {remarks.map((remark) => (
        <blockquote key={remark.id}>
          <Who id={remark.by} />: <Words text={remark.text} most={600} />
        </blockquote>
      ))}
    </div>
  );
}

/** The proposer's `why`: nobody has checked it. */
export function Claim({ proposal, why }: { proposal: Proposal; why: string }) {
  return (
    <blockquote class="claim">
      <LongText text={why} first={600} /> <small class="dim">— claimed by {visible(proposal.proposer, 60)}</small>
    </blockquote>
  );
}

function Reasoned({ proposal }: { proposal: Proposal }) {
  const { space } = useLive();
  const isOpen = useSignal(false);
  const reasoning = space.reasonings.about(proposal);
  const last = reasoning?.steps.at(-1);
  if (reasoning === undefined || last === undefined) return null;
  // Anyone can name someone else's reasoning as the context of a proposal.
  const whose = reasoning.by === proposal.proposer ? "its reasoning" : `the reasoning of ${visible(reasoning.by, 60)}, which it refers to`;
  return (
    <details open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        <Words text={textIn(last.payload?.message) ?? ""} most={400} /> <small class="dim">{whose}</small>
      </summary>
      {isOpen.value && (
        <ol class="thoughts">
          {reasoning.steps.slice(-STEPS_SHOWN).map((step) => (
            <li key={step.id}>
              <LongText text={textIn(step.payload?.message) ?? ""} first={600} />
            </li>
          ))}
        </ol>
      )}
    </details>
  );
}

/** The rejections so far: the proposal is still open for everyone else. */
export function Rejections({ proposal: { rejections } }: { proposal: Proposal }) {
  if (rejections.length === 0) return null;
  const shown = rejections.slice(-REJECTIONS_SHOWN);
  return (
    <section class="rejections" aria-label="rejections">
      <h3>Rejected {rejections.length === 1 ? "once" : `${rejections.length} times`}</h3>
      <ul>
        {shown.map((rejection) => (
          <li key={rejection.id}>
            <RejectionWords rejection={rejection} />
            <small class="dim">
              <Ago at={rejection.at} />
            </small>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Who rejected it, and in which words. */
export function RejectionWords({ rejection: { by, reason, message, explanations } }: { rejection: Rejection }) {
  const words = [...(message === null ? [] : [message]), ...explanations.map(({ text }) => text)];
  return (
    <>
      <p>
        <Who id={by} /> rejected it{reason !== null && `: ${reasonOf(reason, 160)}`}
      </p>
      {words.map((text, at) => (
        <blockquote key={at}>
          <LongText text={text} first={600} />
        </blockquote>
      ))}
    </>
  );
}
