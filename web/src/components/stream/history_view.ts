/** Looking back: older envelopes page by page, to the beginning, and any part of the history by time or id. */

import { batch, signal } from "@preact/signals";

import type { Envelope } from "../../envelope";
import { Past, type Stretch } from "../../space/past";
import { type EnvelopesPage, type HistoryQuery, Problem, history } from "../../wire";
import type { PageState } from "../app/page_state";

const PAGE = 500;
/** What is shown before the place that somebody looks for. */
const BEFORE = 200;
/** With so many here, older ones are shown apart: what is followed live does not grow without end. */
const TOGETHER_MAX = 4_000;
/** A page may be empty and go on: few fit, or they are far apart. */
const EMPTY_MAX = 20;

type Older = { is: "more" | "loading" | "none"; before: string | null };

export class HistoryView {
  /** What is looked at instead of what happens now. */
  readonly past = signal<Past | null>(null);
  /** How it stands with older ones than those that are here. */
  readonly older = signal<Older>({ is: "more", before: null });
  readonly busy = signal(false);
  #page: PageState;

  constructor(page: PageState) {
    this.#page = page;
  }

  /** The first page is here; `next` as the gateway said. */
  began(next: string | null): void {
    this.older.value = { is: next === null ? "none" : "more", before: next };
  }

  /** Whether there are older ones than the first that is shown. */
  get hasEarlier(): boolean {
    const past = this.past.value;
    return past === null ? this.older.value.is !== "none" || this.#isCut : past.older !== null;
  }

  get hasLater(): boolean {
    return this.past.value?.newer != null;
  }

  /** Bring older ones before those shown. */
  async earlier(): Promise<void> {
    const past = this.past.value;
    if (past !== null) await this.#read(past, past.older, "desc");
    else if (this.#page.space.rows.envelopes < TOGETHER_MAX && !this.#isCut) await this.#live();
    else await this.toEnvelope(this.#page.space.rows.list[0]?.envelope.id ?? "");
  }

  /** What was here and is no longer, because there was too much of it. */
  get #isCut(): boolean {
    return this.#page.space.rows.cut > 0;
  }

  /** Bring newer ones behind those shown. */
  async later(): Promise<void> {
    const past = this.past.value;
    if (past !== null) await this.#read(past, past.newer, "asc");
  }

  /** Show what happened from a moment on, and a little of what was before. */
  async toMoment(moment: Date): Promise<void> {
    const at = moment.toISOString();
    await this.#look(async () => {
      const [before, after] = await Promise.all([
        this.#fetch({ until: at, order: "desc", limit: BEFORE }),
        this.#fetch({ since: at, limit: PAGE }),
      ]);
      if (after.envelopes.length === 0) this.#page.tell("Nothing happened after that time. These are the events before it.");
      this.#show(before, after, after.envelopes[0] ?? before.envelopes.at(-1));
    });
  }

  /** Show the envelope with this id, with what was before and after it. */
  async toEnvelope(id: string): Promise<void> {
    await this.#look(async () => {
      const before = await this.#fetch({ before: id, order: "desc", limit: BEFORE });
      const last = before.envelopes.at(-1);
      const after = await this.#fetch({ ...(last === undefined ? {} : { after: last.id }), limit: PAGE });
      const found = after.envelopes.find((one) => one.id === id);
      if (found === undefined) throw new Problem(404, "no_such_envelope", "no envelope with that id is stored");
      this.#show(before, after, found);
    });
  }

  /** Back to what happens now, at its end. */
  toNow(): void {
    batch(() => {
      this.past.value = null;
      this.#page.following.value = true;
    });
  }

  #show(before: Stretch, after: Stretch, first: Envelope | undefined): void {
    const { pane, row, goTo, who } = this.#page;
    batch(() => {
      this.past.value = new Past(who.participant, [...before.envelopes, ...after.envelopes], before.next, after.next);
      pane.value = "stream";
      row.value = first?.id ?? null;
      goTo.value = first?.id ?? null;
    });
  }

  async #read(past: Past, from: string | null, order: "asc" | "desc"): Promise<void> {
    if (from === null) return;
    await this.#look(async () => {
      const stretch = await this.#fetch({ order, limit: PAGE, ...(order === "desc" ? { before: from } : { after: from }) });
      if (this.past.value === past) this.past.value = order === "desc" ? past.earlier(stretch) : past.later(stretch);
    });
  }

  /** Older ones in front of what is followed live. */
  async #live(): Promise<void> {
    const { is, before } = this.older.value;
    if (is !== "more") return;
    this.older.value = { is: "loading", before };
    const { space } = this.#page;
    await this.#look(async () => {
      const { envelopes, next } = await this.#fetch({ order: "desc", limit: PAGE, ...(before === null ? {} : { before }) });
      if (envelopes.length > 0) space.apply({ is: "older", envelopes, at: Date.now() });
      this.began(next);
      this.#page.touch();
    });
    if (this.older.value.is === "loading") this.older.value = { is: "more", before };
  }

  async #look(looking: () => Promise<void>): Promise<void> {
    if (this.busy.value) return;
    this.busy.value = true;
    try {
      await looking();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.#page.tell(`Cannot show that part of the history: ${error.message}`, "bad");
    } finally {
      this.busy.value = false;
    }
  }

  /** Oldest first, whatever the order it is asked for in. */
  async #fetch(query: HistoryQuery): Promise<Stretch> {
    const way = query.order === "desc" ? "before" : "after";
    let page: EnvelopesPage = await history(this.#page.who, query);
    for (let tries = 0; page.envelopes.length === 0 && page.next !== null && tries < EMPTY_MAX; tries += 1) {
      page = await history(this.#page.who, { ...query, [way]: page.next });
    }
    return { envelopes: query.order === "desc" ? page.envelopes.toReversed() : page.envelopes, next: page.next };
  }
}
