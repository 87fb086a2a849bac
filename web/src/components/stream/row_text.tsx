/** What a row of the stream says, for each kind that is more than a line. */

import { useSignal } from "@preact/signals";
import type { ComponentChild } from "preact";

import type { Envelope } from "../../envelope";
import { objectIn, textIn } from "../../space/fields";
import type { Proposal } from "../../space/proposals";
import { isQuestion } from "../../space/questions";
import type { Row } from "../../space/rows";
import type { Space } from "../../space/space";
import { bytes, lasting, visible } from "../../text";
import { Automatic } from "../autopilot/decision";
import { type PageState, useLive } from "../app/page_state";
import { Markdown } from "../values/markdown_view";
import { StatusChip } from "../proposals/status";
import { answerText, argumentsLine, isFailure, lineOf, operationOf } from "../values/summaries";
import { LongText, Whom, Who, Words } from "../values/text_view";

interface Inside {
  row: Row;
  space: Space;
  page: PageState;
  /** The row stays the same object when what it shows has changed: this says so. */
  version: number;
}

const MARKDOWN_MAX = 8_000;

/** Functions where components are not needed: hundreds of rows may come in a second. */
export function said(inside: Inside): ComponentChild {
  switch (inside.row.envelope.kind) {
    case "chat":
      return chatSaid(inside);
    case "mcp/proposal":
      return proposalSaid(inside);
    case "mcp/request":
      return requestSaid(inside);
    case "mcp/response":
      return responseSaid(inside);
    case "reasoning/start":
      return <ReasoningSaid {...inside} />;
    case "stream/open":
      return <StreamSaid {...inside} />;
    default:
      return <Words text={lineOf(inside.row.envelope, aboutOf(inside))} />;
  }
}

/** The proposal that somebody rejects or takes back. */
function aboutOf({ row: { envelope }, space }: Inside): Proposal | undefined {
  if (envelope.kind !== "mcp/reject" && envelope.kind !== "mcp/withdraw") return undefined;
  return envelope.correlation_id?.slice(0, 4).map((id) => space.proposals.get(id)).find((found) => found !== undefined);
}

function chatSaid({ row: { envelope }, space }: Inside) {
  const text = textIn(envelope.payload?.text) ?? "";
  const chat = space.chats.get(envelope.id);
  const formatted = envelope.payload?.format === "markdown" && text.length <= MARKDOWN_MAX;
  return (
    <div class={chat?.cancelled == null ? "chat" : "chat cancelled"}>
      {(envelope.to?.length ?? 0) > 0 && (
        <span class="dim">
          to <Whom ids={envelope.to ?? []} />:{" "}
        </span>
      )}
      {formatted ? <Markdown text={text} of={envelope} /> : <LongText text={text} first={800} />}
      {chat !== undefined && chat.acknowledged.size > 0 && (
        <small class="dim"> ✓ {[...chat.acknowledged].slice(0, 5).map(([who, how]) => visible(`${how} by ${who}`, 60)).join(", ")}</small>
      )}
      {chat?.cancelled != null && <small class="dim"> cancelled by {visible(chat.cancelled.from, 60)}</small>}
    </div>
  );
}

function proposalSaid({ row: { envelope }, space, page }: Inside) {
  const proposal = space.proposals.get(envelope.id);
  return (
    <>
      proposes <strong>{operationOf(envelope.payload)}</strong> on <Whom ids={envelope.to ?? []} />{" "}
      <span class="arguments-line">{argumentsLine(envelope.payload)}</span>{" "}
      {proposal !== undefined && <StatusChip proposal={proposal} />}{" "}
      {proposal !== undefined && space.autopilot.automatic(proposal) !== null && <Automatic proposal={proposal} />}{" "}
      <button type="button" class="quiet" onClick={() => (page.dialog.value = { is: "chain", proposal: envelope.id })}>
        chain
      </button>
    </>
  );
}

function requestSaid({ row: { envelope }, space }: Inside) {
  const exchange = space.exchanges.get(envelope.id);
  const proposal = envelope.correlation_id?.map((id) => space.proposals.get(id)).find((one) => one !== undefined);
  const fulfilment = proposal?.fulfilments.find((one) => one.id === envelope.id);
  const automatic = proposal === undefined ? null : space.autopilot.automatic(proposal);
  const rule = automatic?.fulfilment.id === envelope.id ? automatic.rule : null;
  const progress = exchange?.progress ?? null;
  const method = textIn(envelope.payload?.method) ?? "";
  return (
    <>
      {isQuestion(envelope) ? (
        "asks "
      ) : fulfilment === undefined ? (
        method.startsWith("notifications/") ? "sends " : method.endsWith("/list") ? "requests " : "calls "
      ) : (
        <span class="approved">
          approves {fulfilment.edited && "with changes "}
          {rule !== null && `by rule ${visible(rule, 20)} `}
          {proposal !== undefined && <Who id={proposal.proposer} />}'s{" "}
        </span>
      )}
      {isQuestion(envelope) ? (
        <>
          <Whom ids={envelope.to ?? []} />: <Words text={textIn(objectIn(envelope.payload?.params).message) ?? ""} most={600} />
        </>
      ) : (
        <>
          <strong>{operationOf(envelope.payload)}</strong> on <Whom ids={envelope.to ?? []} />{" "}
          <span class="arguments-line">{argumentsLine(envelope.payload)}</span>
        </>
      )}
      {exchange !== undefined && exchange.answers.length === 0 && progress === null && <span class="dim"> …</span>}
      {exchange !== undefined && exchange.answers.length === 0 && progress !== null && (
        <span class="progress">
          <progress max={progress.total ?? 1} {...(progress.total === null ? {} : { value: progress.done })} aria-label="progress" />
          {progress.message !== null && <Words text={visible(progress.message, 120)} />}
        </span>
      )}
      {exchange?.answers.slice(0, 8).map(({ envelope: answer, at }) => (
        <AnswerSaid key={answer.id} answer={answer} after={at - exchange.at} />
      ))}
    </>
  );
}

function AnswerSaid({ answer, after }: { answer: Envelope; after: number }) {
  const failed = isFailure(answer.payload);
  return (
    <div class={failed ? "answer failed" : "answer"}>
      <span class="arrow" aria-hidden="true">
        ↳
      </span>
      <Who id={answer.from} /> {failed ? "failed: " : ""}
      <LongText text={answerText(answer.payload)} first={300} />
      <small class="dim">{lasting(after)}</small>
    </div>
  );
}

function responseSaid({ row, space }: Inside) {
  const exchange = space.exchanges.get(row.envelope.correlation_id?.[0] ?? "");
  const failed = isFailure(row.envelope.payload);
  return (
    <div class={failed ? "answer failed" : "answer"}>
      {failed ? "failed" : "responded to"} {exchange !== undefined && <strong>{operationOf(exchange.request.payload)}</strong>}
      {exchange !== undefined && <small class="dim"> after {lasting(row.at - exchange.at)}</small>}
      <LongText text={answerText(row.envelope.payload)} first={300} />
    </div>
  );
}

const opened = new WeakSet<Envelope>();

function ReasoningSaid({ row: { envelope }, space, page }: Inside) {
  const isOpen = useSignal(opened.has(envelope));
  const reasoning = space.reasonings.get(envelope.id);
  if (reasoning === undefined) return <Words text={lineOf(envelope)} />;
  const active = reasoning.endedAt === null;
  const last = reasoning.conclusion ?? reasoning.thoughts.at(-1);
  const draft = { kind: "reasoning/cancel", to: [envelope.from], context: envelope.id, payload: { reason: "cancelled" } };
  const toggle = (open: boolean): void => {
    isOpen.value = open;
    if (open) opened.add(envelope);
    else opened.delete(envelope);
  };
  return (
    <div class={active ? "reasoning active" : "reasoning"}>
      <details open={isOpen.value} onToggle={(event) => toggle(event.currentTarget.open)}>
        <summary>
          {active ? "is reasoning" : reasoning.cancel === null ? "reasoned" : "was stopped while reasoning"}:{" "}
          <Words text={textIn(envelope.payload?.message) ?? ""} most={300} />{" "}
          <small class="dim">{reasoning.thoughtsInAll === 1 ? "1 thought" : `${reasoning.thoughtsInAll} thoughts`}
            {active ? "" : `, ${lasting((reasoning.endedAt ?? 0) - reasoning.at)}`}</small>
        </summary>
        {isOpen.value && (
          <ol class="thoughts">
            {reasoning.thoughts.slice(-100).map((thought) => (
              <li key={thought.id}>
                <LongText text={textIn(thought.payload?.message) ?? ""} first={600} />
              </li>
            ))}
          </ol>
        )}
      </details>
      {last !== undefined && !(isOpen.value && reasoning.conclusion === null) && (
        <p class={reasoning.conclusion === null ? "latest" : "conclusion"}>
          <Words text={textIn(last.payload?.message) ?? ""} most={400} />
        </p>
      )}
      {active && page.may(draft) && (
        <button type="button" class="small" onClick={() => void page.send(draft)}>
          Stop
        </button>
      )}
    </div>
  );
}

function StreamSaid({ row: { envelope }, space }: Inside) {
  useLive(); // it flows without envelopes
  const stream = space.streams.byOpening(envelope.id);
  if (stream === undefined) return <Words text={lineOf(envelope)} />;
  const { expectedBytes } = stream;
  return (
    <div class="stream">
      opened a stream for <Who id={stream.owner} />
      {stream.description !== null && (
        <>
          {": "}
          <Words text={stream.description} most={200} />
        </>
      )}{" "}
      <span class="dim">
        {bytes(stream.bytes)}
        {expectedBytes !== null && ` of ${bytes(expectedBytes)}`}
        {stream.closedAt === null ? `, ${bytes(stream.rate)}/s` : ", closed"}
        {stream.closedAt !== null && stream.closedWhy !== null && `: ${visible(stream.closedWhy, 60)}`}
      </span>
      {expectedBytes !== null && expectedBytes > 0 && stream.closedAt === null && (
        <progress max={expectedBytes} value={Math.min(stream.bytes, expectedBytes)} aria-label="progress of the stream" />
      )}
      {stream.isText && stream.tail !== "" && <LongText text={stream.tail.slice(-2_000)} class="block tail" />}
    </div>
  );
}
