/** The state of the page: the space, the connection to it, and what is on screen. Components read it. */

import { batch, computed, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { SignedIn } from "../../signin";
import type { Automatic } from "../../space/autopilot";
import { objectIn, textIn } from "../../space/fields";
import { type Proposal, toolOf } from "../../space/proposals";
import { isQuestion } from "../../space/questions";
import { type Item, Space, momentOf, saysToolsChanged } from "../../space/space";
import { mayDo } from "../../space/capability_match";
import type { Entries } from "../../form";
import { type JsonObject, own } from "../../json";
import {
  type Connection,
  type Draft,
  type Envelope,
  GATEWAY,
  NotSent,
  Problem,
  Refused,
  type State,
  type When,
  connect,
  history,
  participants,
  proposals,
} from "../../wire";
import { Answers } from "../review/answers";
import { Decisions } from "../review/decisions";
import { Drafts } from "../review/drafts";
import { NO_FILTER, type Filter } from "../stream/filter";
import { focusPane } from "./focus";
import { HistoryView } from "../stream/history_view";
import { Notifications } from "./notifications";
import { FrameLimiter } from "./frame_limiter";
import { Settings } from "./settings";

export type Pane = "waiting" | "stream" | "timeline" | "autopilot" | "people";

export type Dialog =
  | { is: "keys" }
  | { is: "raw"; envelope: Envelope }
  | { is: "chain"; proposal: string }
  | { is: "edit"; proposal: string; to: string[] }
  | { is: "reject"; proposals: string[] }
  | { is: "clear"; proposals: string[] }
  | { is: "ladder"; proposal: string }
  | { is: "accept"; rule: string }
  | { is: "control"; participant: string; kind: string }
  | { is: "grant"; participant: string }
  | { is: "revoke"; participant: string; grant: string | null }
  | { is: "invite" }
  | { is: "kick"; participant: string }
  | { is: "history" };

export interface Unsaid {
  text: string;
  /** Nobody tries to send it any more. */
  hasFailed: boolean;
}

export interface Notice {
  key: number;
  tone: "plain" | "bad" | "good";
  text: string;
}

const HISTORY = 500;
const PROPOSALS = 200;
const PROPOSALS_PAGES_MAX = 20;
const QUESTIONS_AMONG = 300;
const QUESTIONS_MAX = 20;
const RULES = 300;
const DECISIONS = 500;
const NEW_RULE = "";
const RULE_NOTICES: Record<string, string> = {
  active: "The rule is active. You can pause or revoke it under Autopilot.",
  asleep: "The rule is paused. You will be asked about such calls again.",
  revoked: "The rule is revoked. You will be asked about such calls again.",
};
const NOTICES_MAX = 4;
const NOTICE_MS = 8_000;
const REFRESH_MS = 400;
const RELIST_MS = 1_000;
const PULSE_MS = 200;

export class PageState {
  readonly who: SignedIn;
  readonly space = new Space();
  /** Grows at most once a frame, however much comes, and less often where drawing takes long: for the stream. */
  readonly version = signal(0);
  /** Grows at once while it is calm, and a few times a second when it is not: for all the rest. */
  readonly pulse = signal(0);
  readonly now = signal(Date.now());
  readonly state = signal<State>({ is: "connecting" });
  readonly loaded = signal(false);
  readonly pane = signal<Pane>("waiting");
  readonly dialog = signal<Dialog | null>(null);
  /** The rule to be shown in the list of rules. */
  readonly rule = signal<string | null>(null);
  readonly notices = signal<Notice[]>([]);
  readonly filter = signal<Filter>(NO_FILTER);
  /** What somebody is about to say: it stays while something else is looked at. */
  readonly saying = signal("");
  /** What was said and has not arrived. */
  readonly unsaid = signal<readonly Unsaid[]>([]);
  /** What somebody changed of a proposal, and has not approved. */
  readonly edits = new Drafts<Entries>();
  readonly history = new HistoryView(this);
  /** What was, where that is looked at instead. */
  readonly past = computed<Space | null>(() => this.history.past.value?.space ?? null);
  /** Whether the stream stays at its end as it grows. */
  readonly following = signal(true);
  /** The row that the keyboard is at, by its envelope; the one to be scrolled to. */
  readonly row = signal<string | null>(null);
  readonly goTo = signal<string | null>(null);
  /** What the gateway answered to an invitation, with the token that nobody is shown again. */
  readonly invited = signal<Envelope | null>(null);
  readonly settings = new Settings();
  readonly notifications: Notifications;
  readonly decisions: Decisions;
  readonly answers = new Answers(this);
  readonly waiting = computed<Item[]>(() => {
    this.pulse.value;
    return this.space.items(this.now.value);
  });
  readonly mayTalk = computed(() => {
    this.pulse.value;
    return this.may({ kind: "chat", payload: { text: "" } });
  });

  #connection: Connection | null = null;
  #pace = new FrameLimiter(() =>
    batch(() => {
      this.version.value += 1;
      this.#beat();
    }),
  );
  #ended = false;
  /** Some of what happened did not come, and is to be asked for. */
  #isBehind = false;
  #noticeKey = 0;
  #refreshing: number | undefined;
  #beating: number | undefined;
  #beatAt = 0;
  #asked = new Set<string>();
  /** Rules that I gave orders about, until the autopilot answers. */
  #orders = new Set<string>();
  #relisting = new Map<string, number>();
  #clock: number;
  #onRefused: (problem: Problem) => void;

  constructor(who: SignedIn, onRefused: (problem: Problem) => void) {
    this.who = who;
    this.#onRefused = onRefused;
    this.space.participants.me = who.participant;
    this.space.participants.space = who.space;
    this.decisions = new Decisions(this);
    this.notifications = new Notifications(who.space, (id) => this.#show(id), (why) => this.tell(why, "bad"));
    this.#clock = window.setInterval(() => (this.now.value = Date.now()), 1000);
  }

  /** Fetch what was, then follow what comes. */
  async start(): Promise<void> {
    const at = Date.now();
    const [page, open, listed] = await Promise.all([
      history(this.who, { order: "desc", limit: HISTORY }).catch(() => null),
      proposals(this.who, { status: "open", limit: PROPOSALS }).catch(() => null),
      participants(this.who).catch(() => null),
    ]);
    if (this.#ended) return;
    const shown = page?.envelopes.toReversed() ?? [];
    if (listed !== null) this.space.apply({ is: "participants", listed, at });
    for (const envelope of shown) this.space.apply({ is: "envelope", envelope, at: momentOf(envelope, at) });
    if (listed !== null) this.space.apply({ is: "participants", listed, at }); // as it is, not as it was
    if (open !== null) this.space.apply({ is: "proposals", listed: open.proposals });
    if (page !== null) this.history.began(page.next);
    this.#isBehind = page === null || open === null || listed === null;
    this.#connection = connect({
      ...this.who,
      after: shown.at(-1)?.id,
      onEnvelope: (envelope) => this.#arrived(envelope),
      onState: (state) => this.#turned(state),
      onRefused: this.#onRefused,
      onGap: () => (this.#isBehind = true),
      onFrame: (stream, data) => {
        this.space.apply({ is: "frame", stream, data, at: Date.now() });
        this.touch();
      },
    });
    batch(() => {
      this.loaded.value = true;
      this.version.value += 1;
      this.pulse.value += 1;
    });
    this.#lookUpTools();
    if (page?.next === null) return;
    void this.#recallQuestions();
    void this.#recallAutopilot();
  }

  stop(): void {
    this.#ended = true;
    window.clearInterval(this.#clock);
    window.clearTimeout(this.#refreshing);
    for (const timer of this.#relisting.values()) window.clearTimeout(timer);
    window.clearTimeout(this.#beating);
    this.#pace.stop();
    this.notifications.stop();
    this.decisions.stop();
    this.#connection?.close();
  }

  /** Send; what the gateway says against it is shown, and null returned. */
  async send(draft: Draft, when?: () => When): Promise<Envelope | null> {
    try {
      if (this.#connection === null) throw new NotSent("there is no connection yet", false);
      return await this.#connection.send(draft, when);
    } catch (error) {
      this.tell(`${whatFailed(draft)}: ${reasonOf(error)}`, "bad");
      return null;
    }
  }

  /** Give the autopilot an order; what became of it is told once it answers. */
  async order(kind: string, payload: JsonObject, about: string[] = []): Promise<void> {
    const sent = await this.send({ kind, ...(about.length === 0 ? {} : { correlation_id: about }), payload });
    if (sent !== null) this.#orders.add(textIn(payload.rule) ?? NEW_RULE);
  }

  may(draft: Draft): boolean {
    return mayDo(this.space.participants.mine, draft);
  }

  tell(text: string, tone: Notice["tone"] = "plain"): void {
    const notice = { key: this.#noticeKey++, tone, text };
    this.notices.value = [...this.notices.value, notice].slice(-NOTICES_MAX);
    window.setTimeout(() => this.dismiss(notice.key), tone === "bad" ? NOTICE_MS * 2 : NOTICE_MS);
  }

  dismiss(key: number): void {
    this.notices.value = this.notices.value.filter((notice) => notice.key !== key);
  }

  /** How the autopilot decided a proposal alone, as far as the page knows; null if it did not. */
  automatic(proposal: Proposal): Automatic | null {
    return this.past.value?.autopilot.automatic(proposal) ?? this.space.autopilot.automatic(proposal);
  }

  /** Something changed: show it with one of the next frames. */
  touch(): void {
    this.#pace.ask();
  }

  #beat(): void {
    const now = Date.now();
    if (now - this.#beatAt >= PULSE_MS) {
      this.#beatAt = now;
      this.pulse.value += 1;
    } else if (this.#beating === undefined) {
      this.#beating = window.setTimeout(() => {
        this.#beating = undefined;
        this.#beat();
      }, PULSE_MS - (now - this.#beatAt));
    }
  }

  #arrived(envelope: Envelope): void {
    this.space.apply({ is: "envelope", envelope, at: Date.now() });
    if (envelope.kind === "mcp/proposal") this.#lookUpTool(this.space.proposals.get(envelope.id));
    else if (envelope.kind === "system/welcome") this.#lookUpTools();
    else if (saysToolsChanged(envelope)) this.#relistSoon(envelope.from);
    else if (envelope.kind === "system/presence") this.#relistSoon(textIn(objectIn(envelope.payload?.participant).id) ?? "");
    if (/^(capability|space)\//.test(envelope.kind)) this.#refreshSoon();
    if (envelope.kind === "space/invite-ack" && envelope.from === GATEWAY) this.invited.value = envelope;
    if (envelope.kind === "autopilot/rule") this.#tellOfRule(envelope);
    if (envelope.kind === "mcp/proposal") this.#notify(envelope.id);
    else if (isQuestion(envelope)) this.#notifyOfQuestion(envelope.id);
    this.touch();
  }

  /** Others' capabilities change without a word to us: ask. */
  #refreshSoon(): void {
    if (this.#refreshing !== undefined) return;
    this.#refreshing = window.setTimeout(() => {
      this.#refreshing = undefined;
      void this.#refresh();
    }, REFRESH_MS);
  }

  async #refresh(): Promise<void> {
    const listed = await participants(this.who).catch(() => null);
    if (listed === null || this.#ended) return;
    this.space.apply({ is: "participants", listed, at: Date.now() });
    this.touch();
  }

  #turned(state: State): void {
    this.state.value = state;
    if (state.is !== "live" || !this.#isBehind) return;
    this.#isBehind = false;
    this.tell("Some events that happened while you were disconnected are missing here. Open the history to see them.", "bad");
    void this.#refresh();
    void this.#recallQuestions();
    void this.#recallProposals();
    void this.#recallAutopilot();
  }

  /** Those that are open and not known here; and, of those known as open, what became of them in the meantime. */
  async #recallProposals(): Promise<void> {
    const unknown = await proposals(this.who, { status: "open", limit: PROPOSALS }).catch(() => null);
    const wanted = new Set(this.space.proposals.open(this.now.peek()).map(({ id }) => id));
    const listed = unknown?.proposals ?? [];
    let before: string | null | undefined;
    for (let count = 0; count < PROPOSALS_PAGES_MAX && wanted.size > 0 && before !== null; count += 1) {
      const asked = before === undefined ? {} : { before };
      const page = await proposals(this.who, { limit: PROPOSALS, ...asked }).catch(() => null);
      for (const one of page?.proposals ?? []) if (wanted.delete(one.id)) listed.push(one);
      before = page?.next ?? null;
    }
    if (this.#ended) return;
    this.#isBehind ||= unknown === null;
    this.space.apply({ is: "proposals", listed });
    this.touch();
  }

  /** What was asked of us before what is shown, and may still be open: nobody else keeps a list of that. */
  async #recallQuestions(): Promise<void> {
    const page = await history(this.who, { kind: "mcp/request", order: "desc", limit: QUESTIONS_AMONG }).catch(() => null);
    const asked = page?.envelopes.filter((one) => isQuestion(one) && one.to?.includes(this.who.participant) === true) ?? [];
    const unsure = asked.filter(({ id }) => this.space.questions.get(id)?.end == null).slice(0, QUESTIONS_MAX);
    for (const question of unsure.toReversed()) {
      const related = await history(this.who, { correlation: question.id, limit: 100 }).catch(() => null);
      if (this.#ended || related === null) return;
      const after = related.envelopes.filter(({ id }) => id !== question.id);
      this.space.apply({ is: "questions", envelopes: [question, ...after], at: Date.now() });
    }
    if (unsure.length > 0) this.touch();
  }

  /** The rules, the last summary, and the latest decisions of the autopilot from before what is shown. */
  async #recallAutopilot(): Promise<void> {
    const wanted = [["autopilot/rule", RULES], ["autopilot/summary", 1], ["autopilot/decision", DECISIONS]] as const;
    for (const [kind, limit] of wanted) {
      const page = await history(this.who, { kind, order: "desc", limit }).catch(() => null);
      if (this.#ended || page === null) return;
      this.space.apply({ is: "autopilot", envelopes: page.envelopes, at: Date.now() });
    }
    this.touch();
  }

  /** A proposal says little without what its tool is; who is to carry it out is asked once. */
  #lookUpTools(): void {
    for (const proposal of this.space.waiting(this.now.peek()).slice(0, 50)) this.#lookUpTool(proposal);
  }

  #lookUpTool(proposal: Proposal | undefined): void {
    const tool = proposal === undefined ? null : toolOf(proposal);
    if (proposal === undefined || tool === null || !this.space.waitsForMe(proposal, this.now.peek())) return;
    for (const target of proposal.to.slice(0, 8)) {
      const known = this.space.tools.get(target, tool) !== undefined && !this.space.tools.isStale(target);
      if (this.#asked.has(target) || known) continue;
      if (this.space.participants.get(target)?.here !== true) continue;
      const draft = { kind: "mcp/request", to: [target], payload: { jsonrpc: "2.0", id: 1, method: "tools/list" } };
      if (!this.may(draft)) continue;
      this.#asked.add(target);
      void this.#connection?.send(draft).catch(() => this.#asked.delete(target));
    }
  }

  /** What waits, for who comes because of a notification; unless it is decided, or there is a dialog to finish first. */
  #show(id: string): void {
    if (this.dialog.value !== null) return;
    this.pane.value = "waiting";
    if (this.decisions.canDecide(id)) this.decisions.offer(id);
    focusPane("waiting");
  }

  /** Who says that its tools are others now, or comes back, is asked again where one of them waits; not all the time. */
  #relistSoon(participant: string): void {
    if (this.#relisting.has(participant)) return;
    const timer = window.setTimeout(() => {
      this.#relisting.delete(participant);
      this.#asked.delete(participant);
      this.#lookUpTools();
    }, RELIST_MS);
    this.#relisting.set(participant, timer);
  }

  /** What became of an order of mine; a rule chosen when approving has no id until now. */
  #tellOfRule({ payload = {} }: Envelope): void {
    const rule = this.space.autopilot.rule(textIn(payload.rule) ?? "");
    if (rule === undefined) return;
    const isMine = this.#orders.delete(rule.id) || (rule.ratifiedBy === this.who.participant && this.#orders.delete(NEW_RULE));
    if (!isMine) return;
    if (rule.refused !== null) this.tell(`The rule was not activated: ${rule.refused}.`, "bad");
    else this.tell(own(RULE_NOTICES, rule.state) ?? `The rule is now ${rule.state}.`, "good");
  }

  #notifyOfQuestion(id: string): void {
    const question = this.space.questions.get(id);
    if (question === undefined || !this.space.waitsForAnswer(question)) return;
    this.notifications.tell({ id, who: question.asker, does: "asks you a question" });
  }

  #notify(id: string): void {
    const proposal = this.space.proposals.get(id);
    if (proposal === undefined || !this.space.waitsForMe(proposal, this.now.peek())) return;
    this.notifications.tell({ id, who: proposal.proposer, does: `proposes ${toolOf(proposal) ?? proposal.method}` });
  }
}

const PageStateContext = createContext<PageState | null>(null);
export const PageStateProvider = PageStateContext.Provider;

export function usePageState(): PageState {
  const page = useContext(PageStateContext);
  if (page === null) throw new Error("there is no page around this component");
  return page;
}

/** The same, for who shows what changes in place: drawn anew when something came. */
export function useLive(): PageState {
  const page = usePageState();
  page.pulse.value;
  return page;
}

function whatFailed(draft: Draft): string {
  return `${draft.kind} was not sent`;
}

function reasonOf(error: unknown): string {
  if (error instanceof Refused || error instanceof Problem) return error.message;
  if (error instanceof NotSent) return error.message + (error.uncertain ? "; it may have arrived anyway" : "");
  return "an unexpected error occurred in the page";
}
