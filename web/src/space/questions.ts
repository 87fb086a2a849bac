/** PURE. The questions of the space (`elicitation/create` of MCP): who asks whom what, and what became of each. */

import type { Envelope } from "../envelope";
import { type Json, type JsonObject, isObject } from "../json";
import { numberIn, objectIn, roughSize, textIn } from "./fields";
import { surplus } from "./eviction";

export type AnswerAction = "accept" | "decline" | "cancel";

export type QuestionEnd =
  /** `action` is null where the answer was an error. */
  | { is: "answered"; id: string; by: string; at: number; action: AnswerAction | null }
  | { is: "taken-back"; id: string; at: number };

export interface Question {
  id: string;
  asker: string;
  to: string[];
  /** The asker's own name for it, which an answer must carry. */
  rpcId: Json;
  message: string;
  mode: "form" | "url";
  schema: JsonObject;
  url: string | null;
  /** What it is asked for: the requests that the asker works on, as far as it says. */
  about: string[];
  context: string | null;
  at: number;
  end: QuestionEnd | null;
  /** About how much memory it takes. */
  size: number;
}

const METHOD = "elicitation/create";
const CANCELLED = "notifications/cancelled";
const KEPT_MAX = 1_000;
const SLACK = 100;
const SIZE_MAX = 50_000_000;
const SIZE_LEAST = 300;
const UNKNOWN_METHOD = -32601;
const ACTIONS: readonly Json[] = ["accept", "decline", "cancel"] satisfies AnswerAction[];

/** Whether this envelope asks somebody something. */
export function isQuestion(envelope: Envelope): boolean {
  return envelope.kind === "mcp/request" && envelope.payload?.method === METHOD && envelope.payload.id !== undefined;
}

/** All questions, fed with the space's envelopes in order. */
export class Questions {
  readonly all = new Map<string, Question>();
  #size = 0;

  get(id: string): Question | undefined {
    return this.all.get(id);
  }

  /** Those that wait for an answer of this participant, oldest first. */
  openFor(who: string): Question[] {
    return [...this.all.values()].filter((question) => question.end === null && question.to.includes(who));
  }

  /** Take the next envelope; return the questions it changed. */
  apply(envelope: Envelope, at: number): Question[] {
    if (isQuestion(envelope)) return this.#ask(envelope, at);
    if (envelope.kind === "mcp/response") return this.#answered(envelope, at);
    if (envelope.kind === "mcp/request" && envelope.payload?.method === CANCELLED) return this.#takenBack(envelope, at);
    return [];
  }

  /** Know of what another book knows and this one does not. */
  take(other: Questions): void {
    const older = [...other.all.values()].filter((question) => !this.all.has(question.id));
    if (older.length === 0) return;
    const all = [...this.all.values(), ...older].sort((one, another) => one.at - another.at);
    this.all.clear();
    for (const question of all) this.all.set(question.id, question);
    for (const { size } of older) this.#size += size;
  }

  #ask(envelope: Envelope, at: number): Question[] {
    if (this.all.has(envelope.id)) return [];
    const question = asked(envelope, at);
    this.all.set(envelope.id, question);
    this.#size += question.size;
    this.#shrink();
    return [question];
  }

  /** By one of those it was addressed to. That one cannot answer is no answer where others can. */
  #answered(envelope: Envelope, at: number): Question[] {
    const { payload = {}, id, from: by } = envelope;
    return this.#named(envelope).filter((question) => {
      if (question.end !== null || !question.to.includes(by)) return false;
      if (numberIn(objectIn(payload.error).code) === UNKNOWN_METHOD && question.to.length > 1) return false;
      question.end = { is: "answered", id, by, at, action: actionIn(payload) };
      return true;
    });
  }

  /** By its asker, who knows it by its JSON-RPC id, or by that of its envelope. */
  #takenBack(envelope: Envelope, at: number): Question[] {
    const wanted = objectIn(envelope.payload?.params).requestId;
    const about = envelope.correlation_id ?? [];
    return [...this.all.values()].filter((question) => {
      if (question.end !== null || question.asker !== envelope.from) return false;
      const isMeant = about.includes(question.id) || (wanted !== undefined && (wanted === question.rpcId || wanted === question.id));
      if (isMeant) question.end = { is: "taken-back", id: envelope.id, at };
      return isMeant;
    });
  }

  #named(envelope: Envelope): Question[] {
    return (envelope.correlation_id ?? []).map((id) => this.all.get(id)).filter((found) => found !== undefined);
  }

  #shrink(): void {
    if (this.all.size <= KEPT_MAX + SLACK && this.#size <= SIZE_MAX) return;
    const whose = ({ asker }: Question): string => asker;
    const isSettled = ({ end }: Question): boolean => end !== null;
    const keeping = { countMax: KEPT_MAX, sizeMax: SIZE_MAX * 0.9, isSettled, whose };
    for (const { id, size } of surplus([...this.all.values()], keeping)) {
      this.all.delete(id);
      this.#size -= size;
    }
  }
}

function asked(envelope: Envelope, at: number): Question {
  const params = objectIn(envelope.payload?.params);
  const mode = params.mode === "url" ? "url" : "form";
  return {
    id: envelope.id,
    asker: envelope.from,
    to: envelope.to ?? [],
    rpcId: envelope.payload?.id ?? null,
    message: textIn(params.message) ?? "",
    mode,
    schema: mode === "form" && isObject(params.requestedSchema) ? params.requestedSchema : {},
    url: mode === "url" ? textIn(params.url) : null,
    about: envelope.correlation_id ?? [],
    context: envelope.context ?? null,
    at,
    end: null,
    size: SIZE_LEAST + roughSize(params),
  };
}

function actionIn(payload: JsonObject): AnswerAction | null {
  const action = objectIn(payload.result).action;
  return action !== undefined && ACTIONS.includes(action) ? (action as AnswerAction) : null;
}
