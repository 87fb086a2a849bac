/** PURE. Who belongs to the space: what each may do, whether it is here, and how it is doing. */

import { type Envelope, GATEWAY } from "../envelope";
import type { Participant as Listed } from "../http";
import { type JsonObject, isObject } from "../json";
import { listIn, momentIn, numberIn, objectIn, textIn } from "./fields";

export interface Pause {
  by: string;
  id: string;
  /** null: until somebody resumes. */
  until: number | null;
  reason: string | null;
}

export interface Grant {
  id: string;
  by: string;
  at: number;
  capabilities: JsonObject[];
  expiresAt: number | null;
  reason: string | null;
}

export interface Refusal {
  at: number;
  kind: string | null;
  lacked: string | null;
  message: string | null;
}

export interface Participant {
  id: string;
  here: boolean;
  capabilities: JsonObject[];
  pause: Pause | null;
  shutDown: boolean;
  /** As it says itself; what it has not said again stays. */
  status: { status: string | null; tokens: number | null; maxTokens: number | null };
  lastSeenAt: number | null;
  sent: number;
  grants: Grant[];
  refusals: Refusal[];
}

const KEPT_MAX = 5_000;
const GRANTS_MAX = 128;
const REFUSALS_MAX = 32;

export class Participants {
  me = "";
  space = "";
  readonly all = new Map<string, Participant>();

  get(id: string): Participant | undefined {
    return this.all.get(id);
  }

  get mine(): JsonObject[] {
    return this.all.get(this.me)?.capabilities ?? [];
  }

  /** Those here first, then by name. */
  get listed(): Participant[] {
    return [...this.all.values()].sort(
      (one, other) => Number(other.here) - Number(one.here) || one.id.localeCompare(other.id),
    );
  }

  /** What the gateway answered when asked. */
  know(listed: Listed[], at: number): void {
    for (const entry of listed) {
      const one = this.#one(entry.id);
      if (one === null) continue;
      one.here = entry.connected;
      one.capabilities = entry.capabilities.filter(isObject);
      one.shutDown = entry.shut_down;
      one.pause = entry.paused === null ? null : pauseListed(entry.paused, one.pause);
      if (entry.connected) one.lastSeenAt ??= at;
    }
  }

  apply(envelope: Envelope, at: number): void {
    const payload = envelope.payload ?? {};
    if (envelope.from === GATEWAY) {
      this.#gateway(envelope.kind, payload, at);
      return;
    }
    const sender = this.#one(envelope.from);
    if (sender !== null) {
      sender.sent += 1;
      sender.lastSeenAt = at;
    }
    if (envelope.kind === "participant/status" && sender !== null) {
      const { status, tokens, maxTokens } = sender.status;
      sender.status = {
        status: textIn(payload.status) ?? status,
        tokens: numberIn(payload.tokens) ?? tokens,
        maxTokens: numberIn(payload.max_tokens) ?? maxTokens,
      };
    } else if (envelope.kind.startsWith("participant/")) {
      this.#control(envelope, payload, at);
    } else if (envelope.kind.startsWith("capability/")) {
      this.#capability(envelope, payload, at);
    } else if (envelope.kind === "space/kick") {
      this.all.delete(textIn(payload.participant_id) ?? "");
    } else if (envelope.kind === "space/invite") {
      const invited = this.#one(textIn(payload.participant_id) ?? "");
      if (invited !== null && invited.capabilities.length === 0) {
        invited.capabilities = listIn(payload.initial_capabilities).filter(isObject);
      }
    }
  }

  /** Whether the pause holds at this moment. */
  isPaused(one: Participant, now: number): boolean {
    return one.pause !== null && (one.pause.until === null || one.pause.until > now);
  }

  #gateway(kind: string, payload: JsonObject, at: number): void {
    if (kind === "system/welcome") {
      const you = objectIn(payload.you);
      this.me = textIn(you.id) ?? this.me;
      this.space = textIn(objectIn(payload.space).id) ?? textIn(payload.space) ?? this.space;
      for (const one of this.all.values()) one.here = false;
      for (const entry of [you, ...listIn(payload.participants).filter(isObject)]) this.#joined(entry, at);
    } else if (kind === "system/presence") {
      const entry = objectIn(payload.participant);
      if (payload.event === "join") this.#joined(entry, at);
      else this.#left(textIn(entry.id) ?? "");
    } else if (kind === "system/error" && textIn(payload.participant) !== null) {
      this.#refused(textIn(payload.participant) ?? "", payload, at);
    }
  }

  #joined(entry: JsonObject, at: number): void {
    const one = this.#one(textIn(entry.id) ?? "");
    if (one === null) return;
    one.shutDown = one.here ? one.shutDown : false;
    one.here = true;
    one.lastSeenAt = at;
    if (Array.isArray(entry.capabilities)) one.capabilities = entry.capabilities.filter(isObject);
  }

  #left(id: string): void {
    const one = this.all.get(id);
    if (one !== undefined) one.here = false;
  }

  #refused(id: string, payload: JsonObject, at: number): void {
    const one = this.#one(id);
    if (one === null) return;
    const { attempted_kind: kind, lacked, message } = payload;
    one.refusals.push({ at, kind: textIn(kind), lacked: textIn(lacked), message: textIn(message) });
    if (one.refusals.length > REFUSALS_MAX) one.refusals.shift();
  }

  /** Accepted by the gateway, which enforces these two; the others are up to whom they are for. */
  #control(envelope: Envelope, payload: JsonObject, at: number): void {
    for (const id of envelope.to ?? []) {
      const one = this.all.get(id);
      if (one === undefined) continue;
      if (envelope.kind === "participant/pause") {
        const timeout = numberIn(payload.timeout_seconds);
        const until = timeout === null ? null : at + timeout * 1000;
        one.pause = { by: envelope.from, id: envelope.id, until, reason: textIn(payload.reason) };
      } else if (envelope.kind === "participant/resume") {
        one.pause = null;
      } else if (envelope.kind === "participant/shutdown") {
        one.shutDown = true;
      }
    }
  }

  /** The list itself comes anew from the gateway, when asked: these only say who gave what. */
  #capability(envelope: Envelope, payload: JsonObject, at: number): void {
    const one = this.#one(textIn(payload.recipient) ?? "");
    if (one === null) return;
    if (envelope.kind === "capability/grant") {
      const ttl = numberIn(payload.ttl_seconds);
      one.grants.push({
        id: envelope.id,
        by: envelope.from,
        at,
        capabilities: listIn(payload.capabilities).filter(isObject),
        expiresAt: momentIn(payload.expires_at) ?? (ttl === null ? null : at + ttl * 1000),
        reason: textIn(payload.reason),
      });
      if (one.grants.length > GRANTS_MAX) one.grants.shift();
    } else if (envelope.kind === "capability/revoke") {
      const id = textIn(payload.grant_id);
      if (id !== null) one.grants = one.grants.filter((grant) => grant.id !== id);
    }
  }

  #one(id: string): Participant | null {
    if (id === "" || id.includes(":")) return null;
    const known = this.all.get(id);
    if (known !== undefined) return known;
    if (this.all.size >= KEPT_MAX) return null;
    const one: Participant = {
      id, here: false, capabilities: [], pause: null, shutDown: false,
      status: { status: null, tokens: null, maxTokens: null }, lastSeenAt: null, sent: 0, grants: [], refusals: [],
    };
    this.all.set(id, one);
    return one;
  }
}

function pauseListed(paused: NonNullable<Listed["paused"]>, known: Pause | null): Pause {
  const reason = known?.id === paused.envelope_id ? known.reason : null;
  return { by: paused.by, id: paused.envelope_id, until: momentIn(paused.until ?? undefined), reason };
}
