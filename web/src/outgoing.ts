/** What was sent and not yet answered: in order, none lost, none twice, and none later than a person would expect. */

import { type Draft, type Envelope, GATEWAY, PROTOCOL } from "./envelope";
import { type Json, type JsonObject } from "./json";

/** The gateway said no. `code` is stable, `message` a sentence, `payload` all that it said (`your_capabilities`, …). */
export class Refused extends Error {
  readonly code: string;
  readonly payload: JsonObject;

  constructor(payload: JsonObject) {
    super(asText(payload.message) ?? "the gateway refused it");
    this.code = asText(payload.error) ?? "refused";
    this.payload = payload;
  }
}

/** It could not be sent in time, and will not be. `uncertain`: it left, and may have arrived all the same. */
export class NotSent extends Error {
  readonly uncertain: boolean;

  constructor(message: string, uncertain: boolean) {
    super(message);
    this.uncertain = uncertain;
  }
}

/** Whether it is to leave: later, where somebody has to come first; never, where that was decided in the meantime. */
export type When = "now" | "later" | "never";

interface Pending {
  envelope: Envelope;
  /** How often it left. */
  sent: number;
  /** There is a connection, and it was not to leave yet. */
  isHeld: boolean;
  timer: number;
  when(): When;
  resolve(echo: Envelope): void;
  reject(error: Error): void;
}

const DEADLINE_MS = 30_000;
const PENDING_MAX = 1024;
const RETRY_MS = 250;

export class Outgoing {
  #transmit: (text: string) => void;
  #me: string | null = null;
  #pending = new Map<string, Pending>();

  constructor(transmit: (text: string) => void) {
    this.#transmit = transmit;
  }

  /** `when` is asked each time before it leaves: what was right when it was said may be wrong after a lost connection. */
  send(draft: Draft, when: () => When = () => "now"): Promise<Envelope> {
    const id = draft.id ?? newId();
    if (this.#pending.size >= PENDING_MAX) return Promise.reject(new NotSent("too many envelopes are waiting to be sent", false));
    const envelope = { protocol: PROTOCOL, id, ts: new Date().toISOString(), from: this.#me ?? "", ...draft };
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#late(id), DEADLINE_MS);
      const pending = { envelope: { ...envelope, id }, sent: 0, isHeld: false, timer, when, resolve, reject };
      this.#pending.set(id, pending);
      if (this.#me !== null) this.#pass(pending);
    });
  }

  /** A connection as this participant: what waits is sent, and what was sent without an answer is sent again. */
  connected(me: string): void {
    this.#me = me;
    for (const pending of [...this.#pending.values()]) this.#pass(pending);
  }

  disconnected(): void {
    this.#me = null;
  }

  /** Something is not as it was: what was held back may leave now. */
  reconsider(): void {
    if (this.#me === null) return;
    for (const pending of [...this.#pending.values()]) if (pending.isHeld) this.#pass(pending);
  }

  /** No connection will come any more. */
  abandon(): void {
    for (const pending of [...this.#pending.values()]) {
      this.#take(pending.envelope.id);
      pending.reject(new NotSent("the connection was closed", pending.sent > 0));
    }
  }

  /** What came may be the answer to something. */
  arrived(envelope: Envelope): void {
    if (envelope.kind === "system/error") {
      if (envelope.from === GATEWAY) this.#refused(envelope);
      return;
    }
    const pending = this.#pending.get(envelope.id);
    if (pending !== undefined && pending.sent > 0 && pending.envelope.from === envelope.from) {
      this.#take(envelope.id)?.resolve(envelope);
    }
  }

  #refused(error: Envelope): void {
    const id = error.correlation_id?.[0] ?? "";
    const pending = this.#pending.get(id);
    const payload = error.payload ?? {};
    if (pending === undefined) return;
    if (payload.error === "rate_limited") {
      const wait = typeof payload.retry_after_s === "number" ? payload.retry_after_s * 1000 : RETRY_MS;
      setTimeout(() => this.#again(id), Math.max(wait, RETRY_MS));
    } else if (payload.error === "duplicate_id" && pending.sent > 1) {
      this.#take(id)?.resolve(pending.envelope); // it had arrived the first time
    } else {
      this.#take(id)?.reject(new Refused(payload));
    }
  }

  #again(id: string): void {
    const pending = this.#pending.get(id);
    if (pending !== undefined && this.#me !== null) this.#pass(pending);
  }

  #late(id: string): void {
    const pending = this.#take(id);
    if (pending === undefined) return;
    pending.reject(new NotSent(this.#whyLate(pending), pending.sent > 0));
  }

  #whyLate({ sent, isHeld }: Pending): string {
    if (sent > 0) return "the gateway did not confirm that it arrived";
    return isHeld && this.#me !== null ? "the participant did not reconnect in time" : "the connection was not restored in time";
  }

  #pass(pending: Pending): void {
    const when = pending.when();
    pending.isHeld = when === "later";
    if (pending.isHeld) return;
    if (when === "never") {
      this.#take(pending.envelope.id);
      pending.reject(new NotSent("it was decided in the meantime", pending.sent > 0));
      return;
    }
    pending.envelope.from = this.#me ?? "";
    pending.sent += 1;
    this.#transmit(JSON.stringify(pending.envelope));
  }

  #take(id: string): Pending | undefined {
    const pending = this.#pending.get(id);
    if (pending !== undefined) {
      clearTimeout(pending.timer);
      this.#pending.delete(id);
    }
    return pending;
  }
}

/** `crypto.randomUUID` is kept from pages without TLS, and a gateway in a home network has none. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function asText(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}
