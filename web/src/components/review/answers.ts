/** Answers to questions while they are written: they stay when somebody looks at something else in between. */

import { type Signal, signal } from "@preact/signals";

import { type Entries, type Entry, defaultsIn, entriesFor, formatFaults, valuesIn } from "../../form";
import type { JsonObject } from "../../json";
import { type Fault, faults } from "../../schema";
import type { AnswerAction, Question } from "../../space/questions";
import type { PageState } from "../app/page_state";
import { Drafts } from "./drafts";
import { onceDrawn } from "../app/focus";

interface Draft {
  entries: Signal<Entries>;
  /** Whether it was to be sent as it was, so that what is missing is said. */
  tried: Signal<boolean>;
}

export class Answers {
  #page: PageState;
  #drafts = new Drafts<Draft>();

  constructor(page: PageState) {
    this.#page = page;
  }

  of(question: Question): Draft {
    const known = this.#drafts.get(question.id);
    if (known !== undefined) return known;
    const draft = { entries: signal(entriesFor(question.schema, defaultsIn(question.schema))), tried: signal(false) };
    this.#drafts.keep(question.id, draft);
    return draft;
  }

  write(question: Question, name: string, entry: Entry): void {
    const { entries } = this.of(question);
    entries.value = { ...entries.value, [name]: entry };
  }

  /** What keeps it from being sent. */
  faults(question: Question): Fault[] {
    const entries = this.of(question).entries.value;
    const values = valuesIn(entries);
    const unread = Object.entries(entries).flatMap(([name, { fault }]) => (fault === null ? [] : [{ path: [name], message: fault }]));
    return [...unread, ...faults(question.schema, values), ...formatFaults(question.schema, values)];
  }

  /**
   * Accept with what is written; where that is not enough, the cursor goes to what is missing. Who accepts `within` the
   * form was writing, not giving commands: the next letter is no decision on something else.
   */
  accept(question: Question, within: "form" | "page" = "page"): void {
    const draft = this.of(question);
    if (question.mode === "form" && this.faults(question).length > 0) {
      draft.tried.value = true;
      this.#page.pane.value = "waiting";
      onceDrawn(() => focusField("[aria-invalid=true]"));
      return;
    }
    const content = question.mode === "form" ? valuesIn(draft.entries.value) : null;
    this.#decide(question, "accept", content, within === "form" ? "rest" : "advance");
  }

  decline(question: Question): void {
    this.#decide(question, "decline", null);
  }

  /** Leave it without a decision. */
  cancel(question: Question): void {
    this.#decide(question, "cancel", null);
  }

  #decide(question: Question, action: AnswerAction, content: JsonObject | null, then: "advance" | "rest" = "advance"): void {
    this.#page.decisions.decide([question.id], { is: "answer", action, content }, then);
  }
}

/** Put the cursor into the form of the question that is looked at. */
export function focusField(which = ""): boolean {
  const fields = ["input", "select", "textarea"].map((tag) => `.card.selected .answer-form ${tag}${which}`).join();
  const found = document.querySelector<HTMLElement>(fields);
  found?.focus();
  return found !== null;
}
