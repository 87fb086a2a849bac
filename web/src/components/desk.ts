/** What the page has in hand: the space, the connection to it, and what a person looks at. Components read it. */

import { batch, computed, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { SignedIn } from "../signin";
import { type Proposal, isOpen, toolOf } from "../space/proposals";
import { Space } from "../space/space";
import { mayDo } from "../space/fitting";
import {
  type Connection,
  type Draft,
  type Envelope,
  GATEWAY,
  NotSent,
  Problem,
  Refused,
  type State,
  connect,
  history,
  participants,
  proposals,
} from "../wire";
import { Decisions } from "./decisions";
import { NO_FILTER, type Filter } from "./filter";
import { Settings } from "./settings";

export type Pane = "waiting" | "stream" | "people" | "timeline";

export type Dialog =
  | { is: "keys" }
  | { is: "raw"; envelope: Envelope }
  | { is: "chain"; proposal: string }
  | { is: "edit"; proposal: string; to: string[] }
  | { is: "reject"; proposals: string[] }
  | { is: "control"; participant: string; kind: string }
  | { is: "grant"; participant: string }
  | { is: "revoke"; participant: string; grant: string | null }
  | { is: "invite" }
  | { is: "kick"; participant: string }
  | { is: "history" };

export interface Notice {
  key: number;
  tone: "plain" | "bad" | "good";
  text: string;
}

const HISTORY = 500;
const OLDER = 500;
const NOTICES_MAX = 4;
const NOTICE_MS = 8_000;
const REFRESH_MS = 400;
const PULSE_MS = 200;

export class Desk {
  readonly who: SignedIn;
  readonly space = new Space();
  /** Grows at most once a frame, however much comes: for the stream. */
  readonly version = signal(0);
  /** Grows at once while it is calm, and a few times a second when it is not: for all the rest. */
  readonly pulse = signal(0);
  readonly now = signal(Date.now());
  readonly state = signal<State>({ is: "connecting" });
  readonly loaded = signal(false);
  readonly pane = signal<Pane>("waiting");
  readonly dialog = signal<Dialog | null>(null);
  readonly notices = signal<Notice[]>([]);
  readonly filter = signal<Filter>(NO_FILTER);
  readonly past = signal<Space | null>(null);
  /** The row that the keyboard is at, by its envelope; the one to be scrolled to. */
  readonly row = signal<string | null>(null);
  readonly goTo = signal<string | null>(null);
  /** What the gateway answered to an invitation, with the token that nobody is shown again. */
  readonly invited = signal<Envelope | null>(null);
  readonly older = signal<{ is: "more" | "loading" | "none"; before: string | null }>({ is: "more", before: null });
  readonly settings = new Settings();
  readonly decisions: Decisions;
  readonly waiting = computed<Proposal[]>(() => {
    this.pulse.value;
    return this.space.waiting;
  });
  readonly mayTalk = computed(() => {
    this.pulse.value;
    return this.may({ kind: "chat", payload: { text: "" } });
  });

  #connection: Connection | null = null;
  #scheduled = false;
  #ended = false;
  #noticeKey = 0;
  #refreshing: number | undefined;
  #beating: number | undefined;
  #beatAt = 0;
  #asked = new Set<string>();
  #clock: number;
  #onRefused: (problem: Problem) => void;

  constructor(who: SignedIn, onRefused: (problem: Problem) => void) {
    this.who = who;
    this.#onRefused = onRefused;
    this.space.participants.me = who.participant;
    this.space.participants.space = who.space;
    this.decisions = new Decisions(this);
    this.#clock = window.setInterval(() => (this.now.value = Date.now()), 1000);
  }

  /** Fetch what was, then follow what comes. */
  async start(): Promise<void> {
    const at = Date.now();
    const [page, open, listed] = await Promise.all([
      history(this.who, { order: "desc", limit: HISTORY }).catch(() => null),
      proposals(this.who, { status: "open", limit: 200 }).catch(() => null),
      participants(this.who).catch(() => null),
    ]);
    if (this.#ended) return;
    const shown = page?.envelopes.toReversed() ?? [];
    if (listed !== null) this.space.apply({ is: "participants", listed, at });
    for (const envelope of shown) this.space.apply({ is: "envelope", envelope, at: momentOf(envelope, at) });
    if (listed !== null) this.space.apply({ is: "participants", listed, at }); // as it is, not as it was
    if (open !== null) this.space.apply({ is: "proposals", listed: open.proposals });
    this.older.value = { is: page?.next == null ? "none" : "more", before: page?.next ?? null };
    this.#connection = connect({
      ...this.who,
      after: shown.at(-1)?.id,
      onEnvelope: (envelope) => this.#arrived(envelope),
      onState: (state) => (this.state.value = state),
      onRefused: this.#onRefused,
      onGap: () => this.#missed(),
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
  }

  stop(): void {
    this.#ended = true;
    window.clearInterval(this.#clock);
    window.clearTimeout(this.#refreshing);
    window.clearTimeout(this.#beating);
    this.decisions.stop();
    this.#connection?.close();
  }

  /** Send; what the gateway says against it is shown, and null returned. */
  async send(draft: Draft): Promise<Envelope | null> {
    try {
      if (this.#connection === null) throw new NotSent("there is no connection yet", false);
      return await this.#connection.send(draft);
    } catch (error) {
      this.tell(`${whatFailed(draft)}: ${reasonOf(error)}`, "bad");
      return null;
    }
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

  /** Bring older envelopes before those shown. */
  async loadOlder(): Promise<void> {
    const { is, before } = this.older.value;
    if (is !== "more") return;
    this.older.value = { is: "loading", before };
    const page = await history(this.who, { order: "desc", limit: OLDER, ...(before === null ? {} : { before }) }).catch(() => null);
    if (page === null) {
      this.older.value = { is: "more", before };
      this.tell("Older envelopes cannot be fetched now.", "bad");
      return;
    }
    if (page.envelopes.length > 0) this.space.apply({ is: "older", envelopes: page.envelopes.toReversed(), at: Date.now() });
    this.older.value = { is: page.next === null ? "none" : "more", before: page.next };
    this.touch();
  }

  /** Show what happened from a moment on, apart from what happens now. */
  async lookBack(since: Date): Promise<void> {
    const page = await history(this.who, { since: since.toISOString(), limit: 1000 }).catch((error: Problem) => error);
    if (page instanceof Error) {
      this.tell(`That part of the history cannot be shown: ${page.message}`, "bad");
      return;
    }
    const past = new Space();
    past.participants.me = this.who.participant;
    for (const envelope of page.envelopes) past.apply({ is: "envelope", envelope, at: momentOf(envelope, Date.now()) });
    batch(() => {
      this.past.value = past;
      this.pane.value = "stream";
      if (page.envelopes.length === 0) this.tell("Nothing happened after that moment.");
    });
  }

  touch(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const bump = (): void => {
      this.#scheduled = false;
      batch(() => {
        this.version.value += 1;
        this.#beat();
      });
    };
    if (document.visibilityState === "visible") requestAnimationFrame(bump);
    else window.setTimeout(bump, 500); // there are no frames while nobody looks
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
    if (/^(capability|space)\//.test(envelope.kind)) this.#refreshSoon();
    if (envelope.kind === "space/invite-ack" && envelope.from === GATEWAY) this.invited.value = envelope;
    if (envelope.kind === "mcp/proposal") this.#notify(envelope.id);
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

  #missed(): void {
    this.tell("Some of what happened while there was no connection is not shown here. Look at the history for it.", "bad");
    void this.#refresh();
    void proposals(this.who, { status: "open", limit: 200 })
      .then((page) => {
        this.space.apply({ is: "proposals", listed: page.proposals });
        this.touch();
      })
      .catch(() => undefined);
  }

  /** A proposal says little without what its tool is; who is to carry it out is asked once. */
  #lookUpTools(): void {
    for (const proposal of this.space.waiting.slice(0, 50)) this.#lookUpTool(proposal);
  }

  #lookUpTool(proposal: Proposal | undefined): void {
    const tool = proposal === undefined ? null : toolOf(proposal);
    if (proposal === undefined || tool === null || !this.space.waitsForMe(proposal)) return;
    for (const target of proposal.to.slice(0, 8)) {
      if (this.#asked.has(target) || this.space.tools.get(target, tool) !== undefined) continue;
      if (this.space.participants.get(target)?.here !== true) continue;
      const draft = { kind: "mcp/request", to: [target], payload: { jsonrpc: "2.0", id: 1, method: "tools/list" } };
      if (!this.may(draft)) continue;
      this.#asked.add(target);
      void this.#connection?.send(draft).catch(() => this.#asked.delete(target));
    }
  }

  #notify(id: string): void {
    const proposal = this.space.proposals.get(id);
    if (proposal === undefined || !isOpen(proposal) || !this.space.waitsForMe(proposal)) return;
    this.settings.notify(`${proposal.proposer} proposes ${toolOf(proposal) ?? proposal.method}`, this.who.space);
  }
}

const DeskContext = createContext<Desk | null>(null);
export const DeskProvider = DeskContext.Provider;

export function useDesk(): Desk {
  const desk = useContext(DeskContext);
  if (desk === null) throw new Error("there is no desk around this component");
  return desk;
}

/** The same, for who shows what changes in place: drawn anew when something came. */
export function useLive(): Desk {
  const desk = useDesk();
  desk.pulse.value;
  return desk;
}

/** As the envelope claims, but never later than now. */
function momentOf(envelope: Envelope, now: number): number {
  const claimed = Date.parse(envelope.ts ?? "");
  return Number.isNaN(claimed) ? now : Math.min(claimed, now);
}

function whatFailed(draft: Draft): string {
  return `${draft.kind} was not sent`;
}

export function reasonOf(error: unknown): string {
  if (error instanceof Refused || error instanceof Problem) return error.message;
  if (error instanceof NotSent) return error.uncertain ? `${error.message}; it may have arrived all the same` : error.message;
  return "something went wrong here";
}
