/** The chain of a proposal: decisions, request and response, with times, participants and differences. */

import type { ComponentChildren } from "preact";

import { type Answer, type Fulfilment, type NamingRequest, type Proposal, toolOf } from "../../space/proposals";
import { lasting, visible } from "../../text";
import { AskedBecause, Automatic } from "../autopilot/decision";
import { usePageState, useLive } from "../app/page_state";
import { DialogBox } from "../app/dialog";
import { ProposalId } from "./proposal_id";
import { StatusChip, useStatus } from "./status";
import { answerText, reasonOf } from "../values/summaries";
import { Claim, RejectionWords } from "./proposal_text";
import { LongText, Whom, Who, clock } from "../values/text_view";
import { Changes, Params } from "../values/arguments_view";

export function ChainDialog({ id }: { id: string }) {
  const page = useLive();
  const proposal = page.past.value?.proposals.get(id) ?? page.space.proposals.get(id);
  if (proposal === undefined) {
    return (
      <DialogBox title="Chain">
        <p>The page no longer has this proposal. Look for it in the history.</p>
      </DialogBox>
    );
  }
  return <Chain proposal={proposal} />;
}

function Chain({ proposal }: { proposal: Proposal }) {
  const what = toolOf(proposal) ?? proposal.method;
  const status = useStatus(proposal);
  return (
    <DialogBox title={`Proposal: ${visible(what, 60)}`} wide>
      <p>
        <StatusChip proposal={proposal} /> <ProposalId proposal={proposal} />
      </p>
      <ol class="chain">
        <Step tone="proposed" at={proposal.at} title="Proposed" id={proposal.id}>
          <p>
            <Who id={proposal.proposer} /> proposed <strong>{visible(what, 120)}</strong> on <Whom ids={proposal.to} />
          </p>
          {proposal.why !== null && <Claim proposal={proposal} why={proposal.why} />}
          <Params proposal={proposal} />
          <AskedBecause proposal={proposal} />
        </Step>
        {proposal.rejections.map((rejection) => (
          <Step
            key={rejection.id}
            tone="rejected"
            at={rejection.at}
            after={rejection.at - proposal.at}
            title="Rejected"
            id={rejection.id}
          >
            <RejectionWords rejection={rejection} />
          </Step>
        ))}
        {proposal.withdrawn !== null && (
          <Step
            tone="withdrawn"
            at={proposal.withdrawn.at}
            after={proposal.withdrawn.at - proposal.at}
            title="Withdrawn"
            id={proposal.withdrawn.id}
          >
            <p>
              <Who id={proposal.proposer} /> withdrew it
              {proposal.withdrawn.reason !== null && `: ${reasonOf(proposal.withdrawn.reason, 160)}`}
            </p>
          </Step>
        )}
        {proposal.fulfilments.map((fulfilment) => (
          <Fulfilled key={fulfilment.id} proposal={proposal} fulfilment={fulfilment} />
        ))}
        {proposal.unrelated.map((request) => (
          <Unrelated key={request.id} proposal={proposal} request={request} />
        ))}
        {(status === "open" || status === "expired") && (
          <li class="step open">
            <span class="step-mark" aria-hidden="true" />
            <p class="dim">{status === "open" ? "Waiting for a decision." : "It expired: no one can approve it any more."}</p>
          </li>
        )}
      </ol>
    </DialogBox>
  );
}

function Fulfilled({ proposal, fulfilment }: { proposal: Proposal; fulfilment: Fulfilment }) {
  const page = useLive();
  return (
    <>
      <Step
        tone={fulfilment.edited ? "edited" : "approved"}
        at={fulfilment.at}
        after={fulfilment.at - proposal.at}
        title={fulfilment.edited ? "Approved with changes" : "Approved"}
        id={fulfilment.id}
      >
        <p>
          <Who id={fulfilment.by} /> sent the request to <Whom ids={fulfilment.to} />
          {fulfilment.via !== null && <span class="dim"> via {visible(fulfilment.via, 64)}</span>}
          {fulfilment.late && ", after the proposal was closed"}
        </p>
        {page.automatic(proposal)?.fulfilment.id === fulfilment.id && (
          <p>
            <Automatic proposal={proposal} />
          </p>
        )}
        {fulfilment.edited ? <Changes changes={fulfilment.changes} /> : <p class="dim">Exactly as proposed.</p>}
      </Step>
      {fulfilment.answer === null ? (
        <li class="step open">
          <span class="step-mark" aria-hidden="true" />
          <p class="dim">No response yet.</p>
        </li>
      ) : (
        <Answered answer={fulfilment.answer} after={fulfilment.answer.at - fulfilment.at} />
      )}
    </>
  );
}

function Answered({ answer, after }: { answer: Answer; after: number }) {
  return (
    <Step tone={answer.failed ? "failed" : "done"} at={answer.at} after={after} title={answer.failed ? "Failed" : "Done"} id={answer.id}>
      <p>
        <Who id={answer.by} /> {answer.failed ? "reported an error" : "responded"}
      </p>
      <LongText text={answerText(answer.payload)} class="block" />
    </Step>
  );
}

function Unrelated({ proposal, request }: { proposal: Proposal; request: NamingRequest }) {
  return (
    <Step tone="unrelated" at={request.at} after={request.at - proposal.at} title="Unrelated request" id={request.id}>
      <p>
        <Who id={request.by} /> called <strong>{visible(request.tool ?? request.method, 120)}</strong> on <Whom ids={request.to} /> and
        named this proposal. That does not approve it.
      </p>
    </Step>
  );
}

interface StepProps {
  tone: string;
  at: number;
  after?: number;
  title: string;
  id: string;
  children: ComponentChildren;
}

function Step({ tone, at, after, title, id, children }: StepProps) {
  const page = usePageState();
  const show = (): void => {
    page.dialog.value = null;
    page.pane.value = "stream";
    page.goTo.value = id;
    page.row.value = id;
  };
  return (
    <li class={`step ${tone}`}>
      <span class="step-mark" aria-hidden="true" />
      <div class="step-head">
        <h3>{title}</h3>
        {clock(at)}
        {after !== undefined && <small class="dim">{lasting(after)} later</small>}
        <button type="button" class="quiet" onClick={show}>
          Show in stream
        </button>
      </div>
      {children}
    </li>
  );
}
