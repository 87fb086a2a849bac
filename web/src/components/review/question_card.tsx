/** One question: who asks what, during which call, and a form to answer or a page to open. */

import { useEffect, useRef } from "preact/hooks";

import { own } from "../../json";
import type { Question } from "../../space/questions";
import { secretsAsked } from "../../space/secrets";
import { visible } from "../../text";
import { useLive } from "../app/page_state";
import { Fields } from "../values/form_fields";
import { operationOf } from "../values/summaries";
import { Ago, LongText, Whom, Who, Words } from "../values/text_view";

export function QuestionCard({ question }: { question: Question }) {
  const { decisions, space } = useLive();
  const card = useRef<HTMLElement>(null);
  const selected = decisions.selected.value === question.id;
  const open = question.end === null;
  useEffect(() => {
    if (selected) card.current?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  const underWay = decisions.underWay.value.has(question.id);
  const name = `card question${selected ? " selected" : ""}${underWay ? " under-way" : ""}${open ? "" : " closed"}`;
  return (
    <article
      ref={card}
      class={name}
      data-question={visible(question.id, 80)}
      aria-label={`${visible(question.asker, 60)} asks you: ${visible(question.message, 120)}`}
    >
      <div class="card-head">
        <span class="question-mark" aria-hidden="true">
          ?
        </span>
        <button type="button" class="card-title" aria-expanded={selected} onClick={() => decisions.select(selected ? null : question.id)}>
          <span class="card-who">
            <Who id={question.asker} /> asks you
          </span>
          {!selected && (
            <strong class="card-what">
              <Words text={question.message || "a question"} most={120} />
            </strong>
          )}
        </button>
        <span class="card-when">
          {open ? <Ago at={question.at} /> : <span class="chip">{endOf(question, space.me, decisions.isMine(question.id))}</span>}
        </span>
      </div>
      {selected && <Inside question={question} />}
    </article>
  );
}

function Inside({ question }: { question: Question }) {
  const { space } = useLive();
  const others = question.to.filter((who) => who !== space.me);
  return (
    <div class="card-inside">
      <div class="question-words">
        <LongText text={question.message || "The question has no text."} first={1_000} />
      </div>
      <WhatFor question={question} />
      <Secrets question={question} />
      {others.length > 0 && (
        <p class="dim">
          Also asked: <Whom ids={others} />. The first answer counts.
        </p>
      )}
      {space.participants.get(question.asker)?.here !== true && question.end === null && (
        <p class="warning" role="note">
          {visible(question.asker, 60)} is not connected and would not receive an answer.
        </p>
      )}
      {question.mode === "url" ? <Page question={question} /> : <Form question={question} />}
      <Answering question={question} />
    </div>
  );
}

/** The call that the asker is working on, if it says so and that is to be seen here. */
function WhatFor({ question }: { question: Question }) {
  const { space } = useLive();
  const call = question.about.map((id) => space.exchanges.get(id)?.request).find((found) => found?.to?.includes(question.asker) === true);
  if (call === undefined && question.end !== null) return null;
  if (call === undefined) {
    return (
      <p class="warning" role="note">
        {visible(question.asker, 60)} does not name the request that it needs this for.
      </p>
    );
  }
  return (
    <p class="dim">
      While running <strong>{operationOf(call.payload)}</strong> for <Who id={call.from} />
    </p>
  );
}

function Secrets({ question }: { question: Question }) {
  const asked = secretsAsked(question);
  if (asked.length === 0 || question.end !== null) return null;
  return (
    <p class="warning grave" role="note">
      This looks like a request for a secret ({asked.slice(0, 4).map((name) => visible(name, 40)).join(", ")}). Everyone in the space sees your
      answer, and it may be stored. No participant needs your password or token.
    </p>
  );
}

function Form({ question }: { question: Question }) {
  const page = useLive();
  const { answers, decisions } = page;
  const draft = answers.of(question);
  const entries = draft.entries.value;
  const wrong = answers.faults(question).filter(({ path: [name] }) => {
    const entry = own(entries, name ?? "");
    return entry?.fault == null && (draft.tried.value || entry?.value !== undefined);
  });
  const elsewhere = wrong.filter(({ path: [name] }) => name === undefined || !Object.hasOwn(entries, name));
  const submit = (event: Event): void => {
    event.preventDefault();
    answers.accept(question, "form");
  };
  return (
    <form
      class="form answer-form"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
      }}
    >
      <Fields
        prefix="answer"
        schema={question.schema}
        entries={entries}
        faults={wrong}
        disabled={!decisions.canDecide(question.id)}
        onEntry={(name, entry) => answers.write(question, name, entry)}
      />
      {Object.keys(entries).length === 0 && <p class="dim">There is nothing to fill in: accept or decline.</p>}
      {elsewhere.map((fault) => (
        <p key={fault.path.join() + fault.message} class="fault">
          {visible(fault.path.join("."), 80)} {visible(fault.message, 200)}
        </p>
      ))}
      <button type="submit" hidden />
    </form>
  );
}

function Page({ question }: { question: Question }) {
  const address = question.url ?? "";
  const page = URL.canParse(address) ? new URL(address) : null;
  if (page === null || !/^https?:$/.test(page.protocol)) {
    return (
      <p class="warning" role="note">
        It asks you to open <code>{visible(address, 300) || "an empty address"}</code>, which is not a web page.
      </p>
    );
  }
  return (
    <div class="question-page">
      <p>
        It asks you to open a page on <strong>{visible(page.host, 120)}</strong>:
      </p>
      <p>
        <a href={page.href} target="_blank" rel="noopener noreferrer nofollow">
          <Words text={page.href} most={600} />
        </a>
      </p>
    </div>
  );
}

function Answering({ question }: { question: Question }) {
  const { answers, decisions, space } = useLive();
  if (!decisions.canDecide(question.id)) {
    const pending = decisions.underWay.value.has(question.id);
    return (
      <div class="decided">
        <p role="status">{pending ? "Your answer is about to be sent." : storyOf(question, space.me, decisions.isMine(question.id))}</p>
      </div>
    );
  }
  return (
    <div class={decisions.guarded.value ? "deciding guarded" : "deciding"}>
      <p class="dim seen-by-all">Everyone in the space sees your answer.</p>
      <button
        type="button"
        class="approve"
        title={question.mode === "url" ? "Say that you will open the page." : "Send the form as you filled it in."}
        onClick={() => answers.accept(question)}
      >
        Accept <kbd>a</kbd>
      </button>
      <button type="button" class="reject" title="Refuse to answer." onClick={() => answers.decline(question)}>
        Decline <kbd>r</kbd>
      </button>
      <button type="button" class="quiet" title="Dismiss the question without a decision." onClick={() => answers.cancel(question)}>
        Dismiss <kbd>l</kbd>
      </button>
    </div>
  );
}

const DONE = { accept: "accepted", decline: "declined", cancel: "dismissed" };

function endOf({ end }: Question, me: string, here: boolean): string {
  if (end === null) return "";
  if (end.is === "taken-back") return "withdrawn";
  const did = end.action === null ? "failed" : DONE[end.action];
  return end.by !== me ? `${did} by ${visible(end.by, 40)}` : here ? did : `${did} by you elsewhere`;
}

/** What became of it. */
function storyOf(question: Question, me: string, here: boolean): string {
  const { end } = question;
  if (end === null) return "You are not allowed to answer it.";
  if (end.is === "taken-back") return `Withdrawn by ${visible(question.asker, 60)}: no answer is needed.`;
  const done = { accept: "Accepted", decline: "Declined", cancel: "Dismissed" };
  const said = end.action === null ? "Answered with an error" : done[end.action];
  if (end.by !== me) return `${said} by ${visible(end.by, 60)}.`;
  return here ? `${said}.` : `${said} by you in another session.`;
}
