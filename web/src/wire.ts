/**
 * The page's one connection to a space: it comes back by itself, brings what was missed, and sends each thing once.
 *
 * All that components need of the wire is exported here: the types, `connect`, and what is asked over HTTP
 * (`history`, `participants`, `proposals`).
 */

import { type Draft, type Envelope, PRIVATE_KINDS, readEnvelope } from "./envelope";
import { type Place, Problem, history, participants } from "./http";
import { isObject } from "./json";
import { Outgoing, type When } from "./outgoing";

export { type Draft, type Envelope, GATEWAY, PROTOCOL } from "./envelope";
export { type ExactNumber, type Json, type JsonObject, exactDigits, isObject, parseJson } from "./json";
export * from "./http";
export { NotSent, Refused, type When } from "./outgoing";

/** How the connection stands, for people to see. */
export type State =
  | { is: "connecting" }
  /** Connected, and what was missed is being fetched: what is shown is not up to date yet. */
  | { is: "catching-up" }
  | { is: "live" }
  /** Lost; tried again at `againAt` (as `Date.now()`), or as soon as the browser is online again. */
  | { is: "waiting"; againAt: number; why: string }
  /** Over: nothing will be tried again. */
  | { is: "closed"; why: string };

export interface Connecting extends Place {
  /** The last envelope seen before: what came after it is brought first. Without it one begins with the live ones. */
  after?: string | undefined;
  /**
   * Each envelope once, in the order of the space, and `system/welcome` and `system/error` for oneself. Numbers that
   * JavaScript would shorten are `ExactNumber`s, so that what is sent on is what came.
   */
  onEnvelope(envelope: Envelope): void;
  onState(state: State): void;
  /** The gateway will not have us, and asking again would not help: a dead token, removed, no such space. */
  onRefused(problem: Problem): void;
  /** Some of what came while there was no connection is not brought: it is gone, or too much. Begin anew with `history`. */
  onGap?(): void;
  /** A frame of a stream: text, or bytes. */
  onFrame?(stream: string, data: string | Uint8Array): void;
}

export interface Connection {
  /**
   * Send an envelope; the promise holds its echo, once everyone was shown it. What a lost connection swallowed is sent
   * again under its id, so that it happens once.
   *
   * Rejects with `Refused` where the gateway said no, and with `NotSent` where there was no answer for half a minute:
   * it is not sent any more then, and `uncertain` says whether it may have arrived all the same. So it does where
   * `when`, asked whenever it is to leave, says never: others may have been faster while there was no connection.
   * Where it says later, it is asked again as participants come.
   */
  send(draft: Draft, when?: () => When): Promise<Envelope>;
  /** End it; nothing is called back any more. */
  close(): void;
}

const SUBPROTOCOL = "mew.v0.4";
const BEARER = "mew.bearer.";
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const STEADY_MS = 5_000;
const HANDSHAKE_MS = 10_000;
const TICK_MS = 10_000;
const ASLEEP_MS = 90_000;
const QUIET_MS = 80;
const REPLAY_MAX_MS = 3_000;
const MISSED_PAGES_MAX = 50;
const PAGE = 1000;
const DO_NOT_COME_BACK = 4500;
const REASONS: Record<number, [code: string, message: string]> = {
  1006: ["unreachable", "the connection was lost"],
  4001: ["shutdown", "the gateway is stopping"],
  4008: ["slow_reader", "this page was reading too slowly"],
  4010: ["unavailable", "the space is currently unavailable"],
  4011: ["space_full", "the space has reached its connection limit"],
  4012: ["flooding", "too many envelopes were refused"],
  4501: ["bad_token", "your token is no longer valid"],
  4503: ["kicked", "you were removed from the space"],
  4504: ["no_such_space", "the space no longer exists"],
};

/** Connect to a space, and stay connected until told otherwise. */
export function connect(options: Connecting): Connection {
  const link = new Link(options);
  link.open();
  return { send: (draft, when) => link.send(draft, when), close: () => link.close() };
}

class Link {
  #options: Connecting;
  #outgoing = new Outgoing((text) => this.#socket?.send(text));
  #socket: WebSocket | null = null;
  #after: string | undefined;
  #attempts = 0;
  #liveSince = Infinity;
  #heardAt = 0;
  #timer: number | undefined;
  #ticks: number;
  #ticked = Date.now();
  #ended = false;
  #welcomed = false;
  /** While what was missed is fetched, what comes waits here, so that the order is kept. */
  #held: Envelope[] | null = null;

  constructor(options: Connecting) {
    this.#options = options;
    this.#after = options.after;
    this.#ticks = setInterval(this.#tick, TICK_MS);
    window.addEventListener("online", this.#hurry);
    document.addEventListener("visibilitychange", this.#hurry);
  }

  send(draft: Draft, when?: () => When): Promise<Envelope> {
    if (this.#ended) return Promise.reject(new Problem(0, "closed", "the connection was closed"));
    return this.#outgoing.send(draft, when);
  }

  close(): void {
    if (!this.#ended) this.#end("signed out");
  }

  /** Also in place of a connection that may be dead: that one is closed once this one stands, so that nobody sees a leave. */
  open(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#tell({ is: "connecting" });
    const former = this.#socket;
    const socket = new WebSocket(this.#address(), [SUBPROTOCOL, BEARER + this.#options.token]);
    socket.binaryType = "arraybuffer";
    const patience = setTimeout(() => socket.close(), HANDSHAKE_MS);
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      clearTimeout(patience);
      former?.close(1000);
      if (this.#socket === socket) this.#received(event.data);
    };
    socket.onclose = (event) => {
      clearTimeout(patience);
      former?.close(1000);
      if (this.#socket === socket) void this.#lost(event.code);
    };
    this.#socket = socket;
    this.#welcomed = false;
    this.#held = null;
    this.#outgoing.disconnected();
  }

  #address(): URL {
    const url = new URL("ws", document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("space", this.#options.space);
    if (this.#after !== undefined) url.searchParams.set("after", this.#after);
    return url;
  }

  // What comes.

  #received(data: string | ArrayBuffer): void {
    this.#heardAt = Date.now();
    if (typeof data !== "string") {
      const bytes = new Uint8Array(data);
      const end = bytes.indexOf(0x23, 1);
      if (end > 1) this.#options.onFrame?.(new TextDecoder().decode(bytes.subarray(1, end)), bytes.subarray(end + 1));
    } else if (data.startsWith("#")) {
      const end = data.indexOf("#", 1);
      if (end > 1) this.#options.onFrame?.(data.slice(1, end), data.slice(end + 1));
    } else {
      const envelope = readEnvelope(data);
      if (envelope !== null) this.#arrived(envelope);
    }
  }

  #arrived(envelope: Envelope): void {
    if (!this.#welcomed && envelope.kind === "system/welcome") {
      this.#welcome(envelope);
    } else if (this.#held !== null) {
      this.#held.push(envelope);
    } else {
      this.#show(envelope);
    }
  }

  #welcome(envelope: Envelope): void {
    this.#welcomed = true;
    this.#show(envelope);
    const { resumed } = envelope.payload ?? {};
    if (resumed === false && this.#after !== undefined) void this.#fetchMissed(this.#after, myId(envelope));
    else if (resumed === true) this.#liveOnceQuiet(myId(envelope), Date.now() + REPLAY_MAX_MS);
    else this.#live(myId(envelope));
  }

  /** What was missed follows the welcome at once, and nothing says where it ends: what waits to be sent may depend on it. */
  #liveOnceQuiet(me: string, latest: number): void {
    this.#tell({ is: "catching-up" });
    const socket = this.#socket;
    setTimeout(() => {
      if (this.#ended || this.#socket !== socket) return;
      if (Date.now() - this.#heardAt >= QUIET_MS || Date.now() >= latest) this.#live(me);
      else this.#liveOnceQuiet(me, latest);
    }, QUIET_MS);
  }

  #live(me: string): void {
    this.#liveSince = Date.now();
    this.#outgoing.connected(me);
    this.#tell({ is: "live" });
  }

  #show(envelope: Envelope): void {
    if (!PRIVATE_KINDS.has(envelope.kind)) this.#after = envelope.id;
    this.#outgoing.arrived(envelope);
    this.#options.onEnvelope(envelope);
    if (envelope.kind === "system/presence") this.#outgoing.reconsider();
  }

  /** The gateway no longer had our place in memory: the history may reach further back. */
  async #fetchMissed(after: string, me: string): Promise<void> {
    const socket = this.#socket;
    const held: Envelope[] = [];
    this.#held = held;
    this.#tell({ is: "catching-up" });
    const shown = new Set<string>();
    let complete = false;
    try {
      for await (const page of this.#pagesAfter(after)) {
        if (this.#socket !== socket) return;
        if (!page.complete) break; // our place is gone, and the page begins somewhere else
        for (const envelope of page.envelopes) {
          shown.add(envelope.id);
          this.#show(envelope);
        }
        complete = page.next === null;
      }
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
    if (this.#socket !== socket) return;
    if (!complete) this.#options.onGap?.();
    this.#held = null;
    for (const envelope of held) {
      if (!shown.has(envelope.id)) this.#show(envelope);
    }
    this.#live(me);
  }

  async *#pagesAfter(after: string) {
    let next: string | null = after;
    for (let count = 0; next !== null && count < MISSED_PAGES_MAX; count += 1) {
      const page = await history(this.#options, { after: next, limit: PAGE });
      yield page;
      next = page.next;
    }
  }

  // Losing it, and coming back.

  async #lost(closeCode: number): Promise<void> {
    const socket = this.#socket;
    const wasIn = this.#welcomed;
    const [code, message] = REASONS[closeCode] ?? ["closed", "the gateway closed the connection"];
    this.#outgoing.disconnected();
    if (Date.now() - this.#liveSince > STEADY_MS) this.#attempts = 0;
    this.#liveSince = Infinity;
    let problem = new Problem(0, code, message);
    // Browsers do not tell how a handshake was answered: ask the same over HTTP.
    if (!wasIn && closeCode < DO_NOT_COME_BACK) problem = (await this.#whyNot()) ?? problem;
    if (this.#ended || this.#socket !== socket) return;
    if (problem.isFinal || closeCode >= DO_NOT_COME_BACK) {
      this.#end(problem.message);
      this.#options.onRefused(problem);
      return;
    }
    const wait = Math.max(this.#pause(), (problem.retryAfterS ?? 0) * 1000);
    this.#socket = null;
    this.#tell({ is: "waiting", againAt: Date.now() + wait, why: problem.message });
    this.#timer = setTimeout(() => this.open(), wait);
  }

  async #whyNot(): Promise<Problem | null> {
    try {
      await participants(this.#options);
      return null;
    } catch (error) {
      return error instanceof Problem ? error : null;
    }
  }

  /** Ever longer, and not the same for all: a gateway that comes back is not run down by all its pages at once. */
  #pause(): number {
    const longest = Math.min(FIRST_WAIT_MS * 2 ** this.#attempts, LONGEST_WAIT_MS);
    this.#attempts = Math.min(this.#attempts + 1, 16);
    return longest * (0.5 + Math.random() / 2);
  }

  #hurry = (): void => {
    if (this.#timer !== undefined && document.visibilityState === "visible") this.open();
  };

  /** After a sleep of the machine a connection may be dead without anybody having been told. */
  #tick = (): void => {
    const now = Date.now();
    const asleep = now - this.#ticked > ASLEEP_MS;
    this.#ticked = now;
    if (asleep && this.#timer === undefined) this.open();
  };

  #end(why: string): void {
    this.#tell({ is: "closed", why });
    this.#ended = true;
    clearTimeout(this.#timer);
    clearInterval(this.#ticks);
    window.removeEventListener("online", this.#hurry);
    document.removeEventListener("visibilitychange", this.#hurry);
    const socket = this.#socket;
    this.#socket = null;
    this.#outgoing.abandon();
    socket?.close(1000);
  }

  #tell(state: State): void {
    if (!this.#ended) this.#options.onState(state);
  }
}

function myId(welcome: Envelope): string {
  const you = welcome.payload?.you;
  return isObject(you) && typeof you.id === "string" ? you.id : "";
}
