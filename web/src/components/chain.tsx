/** A proposal as a picture: proposal, decision, request, response, with times, people and differences. */

import type { ComponentChildren } from "preact";

import { type Answer, type Fulfilment, type Proposal, argumentsOf, statusOf, toolOf } from "../space/proposals";
import { lasting, visible } from "../text";
import { useDesk, useLive } from "./desk";
import { DialogBox } from "./dialog";
import { StatusChip } from "./status";
import { answerText } from "./summaries";
import { LongText, Whom, Who, Words, clock } from "./text_view";
import { Arguments, Changes } from "./values_view";

export function ChainDialog({ id }: { id: string }) {
  const desk = useLive();
  const proposal = desk.past.value?.proposals.get(id) ?? desk.space.proposals.get(id);
  if (proposal === undefined) {
    return (
      <DialogBox title="Chain">
        <p>This proposal is no longer kept here. The history may have it.</p>
      </DialogBox>
    );
  }
  const what = toolOf(proposal) ?? proposal.method;
  return (
    <DialogBox title={`How ${visible(what, 60)} went`} wide>
      <p>
        <StatusChip proposal={proposal} />
      </p>
      <ol class="chain">
        <Step tone="proposed" at={proposal.at} title="Proposed" id={proposal.id}>
          <p>
            <Who id={proposal.proposer} /> proposes <strong>{visible(what, 120)}</strong> of <Whom ids={proposal.to} />
          </p>
          <Arguments values={toolOf(proposal) === null ? proposal.params : argumentsOf(proposal)} />
        </Step>
        {proposal.rejections.map((no) => (
          <Step key={no.id} tone="rejected" at={no.at} after={no.at - proposal.at} title="Rejected" id={no.id}>
            <p>
              <Who id={no.by} /> says no{no.reason !== null && `: ${visible(no.reason, 160)}`}
            </p>
            {no.words.map((words) => (
              <blockquote key={words}>
                <Words text={words} />
              </blockquote>
            ))}
          </Step>
        ))}
        {proposal.withdrawn !== null && (
          <Step
            tone="withdrawn"
            at={proposal.withdrawn.at}
            after={proposal.withdrawn.at - proposal.at}
            title={statusOf(proposal) === "timed_out" ? "Timed out" : "Withdrawn"}
            id={proposal.withdrawn.id}
          >
            <p>
              <Who id={proposal.proposer} /> takes it back
              {proposal.withdrawn.reason !== null && `: ${visible(proposal.withdrawn.reason, 160)}`}
            </p>
          </Step>
        )}
        {proposal.fulfilments.map((fulfilment) => (
          <Fulfilled key={fulfilment.id} proposal={proposal} fulfilment={fulfilment} />
        ))}
        {statusOf(proposal) === "open" && (
          <li class="step open">
            <span class="step-mark" aria-hidden="true" />
            <p class="dim">It waits for a decision.</p>
          </li>
        )}
      </ol>
    </DialogBox>
  );
}

function Fulfilled({ proposal, fulfilment }: { proposal: Proposal; fulfilment: Fulfilment }) {
  useLive();
  return (
    <>
      <Step
        tone={fulfilment.edited === true ? "edited" : "approved"}
        at={fulfilment.at}
        after={fulfilment.at - proposal.at}
        title={fulfilment.edited === true ? "Approved, with changes" : "Approved"}
        id={fulfilment.id}
      >
        <p>
          <Who id={fulfilment.by} /> makes the request to <Whom ids={fulfilment.to} />
          {fulfilment.late && " (after it was closed)"}
        </p>
        {fulfilment.edited === true && <Changes changes={fulfilment.changes} />}
        {fulfilment.edited === false && <p class="dim">Exactly as proposed.</p>}
        {fulfilment.edited === null && <p class="dim">What was sent is not shown here; the history may have it.</p>}
      </Step>
      {fulfilment.answer === null ? (
        <li class="step open">
          <span class="step-mark" aria-hidden="true" />
          <p class="dim">No answer yet.</p>
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
        <Who id={answer.by} /> {answer.failed ? "could not do it" : "answers"}
      </p>
      <LongText text={answerText(answer.payload)} class="block" />
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
  const desk = useDesk();
  const show = (): void => {
    desk.dialog.value = null;
    desk.pane.value = "stream";
    desk.goTo.value = id;
    desk.row.value = id;
  };
  return (
    <li class={`step ${tone}`}>
      <span class="step-mark" aria-hidden="true" />
      <div class="step-head">
        <h3>{title}</h3>
        {clock(at)}
        {after !== undefined && <small class="dim">{lasting(after)} later</small>}
        <button type="button" class="quiet" onClick={show}>
          in the stream
        </button>
      </div>
      {children}
    </li>
  );
}
