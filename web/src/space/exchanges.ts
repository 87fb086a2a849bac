/** PURE. Requests and what was answered to them, paired by `correlation_id`, with the progress in between. */

import type { Envelope } from "../envelope";
import type { JsonObject } from "../json";
import { numberIn, objectIn, textIn } from "./fields";

export interface Progress {
  done: number;
  total: number | null;
  message: string | null;
}

export interface Exchange {
  request: Envelope;
  at: number;
  answers: { envelope: Envelope; at: number }[];
  progress: Progress | null;
}

const KEPT_MAX = 50_000;
const ANSWERS_MAX = 64;

export class Exchanges {
  #all = new Map<string, Exchange>();
  #byToken = new Map<string, string>();

  get(id: string): Exchange | undefined {
    return this.#all.get(id);
  }

  forget(id: string): void {
    this.#all.delete(id);
  }

  /** Take the next envelope; return the exchange that it began, answered or brought further. */
  apply(envelope: Envelope, at: number): Exchange | null {
    if (envelope.kind === "mcp/response") return this.#answer(envelope, at);
    if (envelope.kind !== "mcp/request") return null;
    const method = textIn(envelope.payload?.method) ?? "";
    if (method === "notifications/progress") return this.#progress(envelope);
    return this.#ask(envelope, at);
  }

  #ask(envelope: Envelope, at: number): Exchange | null {
    if (envelope.payload?.id === undefined || this.#all.has(envelope.id)) return null; // a notification is not answered
    const exchange: Exchange = { request: envelope, at, answers: [], progress: null };
    this.#all.set(envelope.id, exchange);
    const token = objectIn(objectIn(envelope.payload.params)._meta).progressToken;
    if (typeof token === "string" || typeof token === "number") this.#byToken.set(String(token), envelope.id);
    if (this.#all.size > KEPT_MAX) drop(this.#all);
    if (this.#byToken.size > KEPT_MAX) drop(this.#byToken);
    return exchange;
  }

  #answer(envelope: Envelope, at: number): Exchange | null {
    const exchange = this.#all.get(envelope.correlation_id?.[0] ?? "");
    if (exchange === undefined || exchange.answers.length >= ANSWERS_MAX) return null;
    const asked = exchange.request.to ?? [];
    if (asked.length > 0 && !asked.includes(envelope.from)) return null;
    exchange.answers.push({ envelope, at });
    return exchange;
  }

  #progress(envelope: Envelope): Exchange | null {
    const params = objectIn(envelope.payload?.params);
    const byToken = this.#byToken.get(String(params.progressToken));
    const exchange = this.#all.get(envelope.correlation_id?.[0] ?? "") ?? this.#all.get(byToken ?? "");
    if (exchange === undefined || exchange.answers.length > 0) return null;
    if (exchange.request.to?.includes(envelope.from) === false) return null;
    exchange.progress = progressIn(params);
    return exchange;
  }
}

function progressIn(params: JsonObject): Progress {
  return { done: numberIn(params.progress) ?? 0, total: numberIn(params.total), message: textIn(params.message) };
}

function drop(map: Map<string, unknown>): void {
  const oldest = map.keys().next();
  if (oldest.done !== true) map.delete(oldest.value);
}
