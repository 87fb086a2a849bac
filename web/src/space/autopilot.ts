/** PURE. What the autopilot says: its decisions, its rules with their evidence, its mode and its figures. */

import type { Envelope } from "../envelope";
import type { Json, JsonObject } from "../json";
import { cut } from "../text";
import { listIn, momentIn, numberIn, objectIn, textIn, textsIn } from "./fields";
import { type Fulfilment, type Proposal, decidingIn } from "./proposals";

export const MODES = ["off", "shadow", "suggest", "act"] as const;
export type Mode = (typeof MODES)[number];
const VERDICTS = ["fulfil", "ask", "audit", "shadow"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** A rule that a reviewer can choose when approving; `scope` goes back unchanged. */
export interface Rung {
  sentence: string;
  scope: JsonObject;
  /** Past decisions that it covers. */
  approved: number;
  rejected: number;
  /** Only of a rule that is known already: a pattern chosen from past decisions is not proved by them. */
  bound: string | null;
}

export interface AutopilotDecision {
  by: string;
  at: number;
  verdict: Verdict;
  why: string;
  rule: string | null;
  bound: string | null;
  ladder: Rung[];
}

export interface AutopilotRule {
  id: string;
  /** When this was said of it. */
  at: number;
  state: string;
  sentence: string;
  author: string;
  ratifiedBy: string | null;
  decisions: number;
  rejections: number;
  bound: string;
  /** What the bound does not cover. */
  limits: string;
  uses: number;
  usesMax: number | null;
  until: number | null;
  lastUsed: number | null;
  samples: string[];
  /** Why the last order was not followed. */
  refused: string | null;
  states: { at: number; state: string }[];
  days: RuleDay[];
  /** The latest reviewed calls that it covers, oldest first: whether each was approved. */
  recent: boolean[];
}

export interface RuleDay {
  day: string;
  approved: number;
  rejected: number;
  alone: number;
}

/** What the autopilot did on one day. */
export interface DayFigures {
  day: string;
  proposals: number;
  alone: number;
  audited: number;
  disagreed: number;
  objected: number;
  demoted: number;
}

export interface AutopilotSummary {
  at: number;
  mode: Mode;
  configured: Mode;
  days: DayFigures[];
  /** How long a review takes: the median. */
  reviewS: number;
}

/** An automatic decision: the request that the autopilot sent, and the rule it says it followed. */
export interface Automatic {
  fulfilment: Fulfilment;
  rule: string | null;
  bound: string | null;
  /** Who said that it should have been asked. */
  objectedBy: string | null;
}

const DECISIONS_MAX = 5_000;
const RULES_MAX = 500;
const TEXT_MAX = 1_000;
const ID_MAX = 64;
const LADDER_MAX = 8;
const LIST_MAX = 200;
const IN_FORCE = new Set(["active", "suggested"]);
const VIA = "autopilot";
/** Kinds that the autopilot itself sends. */
const SPOKEN = new Set(["autopilot/decision", "autopilot/rule", "autopilot/summary"]);

export class Autopilot {
  /** Who spoke as the autopilot last. */
  id: string | null = null;
  summary: AutopilotSummary | null = null;
  #spokeAt = 0;
  #rules = new Map<string, AutopilotRule>();
  #decisions = new Map<string, AutopilotDecision>();
  #objections = new Map<string, string>();

  /** Take an envelope, in any order: what is older than what is known changes nothing. Returns the proposal it is about. */
  apply(envelope: Envelope, at: number): string | null {
    const payload = envelope.payload ?? {};
    if (SPOKEN.has(envelope.kind) && at >= this.#spokeAt) [this.id, this.#spokeAt] = [envelope.from, at];
    switch (envelope.kind) {
      case "autopilot/decision":
        return this.#decided(envelope, payload, at);
      case "autopilot/rule":
        this.#told(payload, at);
        return null;
      case "autopilot/summary":
        this.#summed(payload, at);
        return null;
      case "autopilot/object": {
        const about = textIn(payload.proposal);
        if (about !== null) keep(this.#objections, about, envelope.from, DECISIONS_MAX);
        return about;
      }
      default:
        return null;
    }
  }

  /** The rules: active ones first, then those suggested, then the rest; the newest of each first. */
  get rules(): AutopilotRule[] {
    const rank = ({ state }: AutopilotRule): number => (state === "active" ? 0 : state === "suggested" ? 1 : 2);
    return [...this.#rules.values()].sort((one, other) => rank(one) - rank(other) || other.at - one.at);
  }

  rule(id: string): AutopilotRule | undefined {
    return this.#rules.get(id);
  }

  /** What the autopilot said about a proposal; nothing that its own proposer said. */
  decision({ id, proposer }: Pick<Proposal, "id" | "proposer">): AutopilotDecision | undefined {
    const found = this.#decisions.get(id);
    return found?.by === proposer ? undefined : found;
  }

  /** How the autopilot decided a proposal alone; null if a person did, or nobody. */
  automatic(proposal: Proposal): Automatic | null {
    const fulfilment = decidingIn(proposal);
    const decision = this.decision(proposal);
    if (fulfilment === undefined) return null;
    const isNamed = decision?.verdict === "fulfil" && decision.by === fulfilment.by;
    if (!isNamed && fulfilment.via !== VIA) return null;
    const objectedBy = this.#objections.get(proposal.id) ?? null;
    return { fulfilment, rule: isNamed ? decision.rule : null, bound: isNamed ? decision.bound : null, objectedBy };
  }

  #decided({ from, correlation_id: about }: Envelope, payload: JsonObject, at: number): string | null {
    const verdict = VERDICTS.find((one) => one === payload.verdict);
    const proposal = about?.[0];
    if (verdict === undefined || proposal === undefined || this.#decisions.has(proposal)) return null;
    const decision: AutopilotDecision = {
      by: from,
      at,
      verdict,
      why: wordsIn(payload.why),
      rule: nameIn(payload.rule),
      bound: textIn(payload.bound),
      ladder: listIn(payload.ladder).slice(0, LADDER_MAX).map(objectIn).map(rungIn),
    };
    keep(this.#decisions, proposal, decision, DECISIONS_MAX);
    const rule = this.#rules.get(decision.rule ?? "");
    if (verdict === "fulfil" && rule !== undefined && at > rule.at) {
      rule.uses += 1; // a rule is told of when its state changes, not at each use
      rule.lastUsed = Math.max(rule.lastUsed ?? 0, at);
    }
    return proposal;
  }

  #told(payload: JsonObject, at: number): void {
    const id = nameIn(payload.rule);
    if (id === null || (this.#rules.get(id)?.at ?? 0) > at) return;
    this.#rules.delete(id);
    this.#rules.set(id, ruleIn(id, payload, at));
    if (this.#rules.size <= RULES_MAX) return;
    const oldest = [...this.#rules.values()].find(({ state }) => !IN_FORCE.has(state)) ?? [...this.#rules.values()][0];
    if (oldest !== undefined) this.#rules.delete(oldest.id);
  }

  #summed(payload: JsonObject, at: number): void {
    if ((this.summary?.at ?? 0) > at) return;
    const mode = modeIn(payload.mode);
    this.summary = {
      at,
      mode,
      configured: payload.configured === undefined ? mode : modeIn(payload.configured),
      days: listIn(payload.days).slice(-LIST_MAX).map(objectIn).map(dayIn),
      reviewS: Math.max(0, numberIn(payload.review_s) ?? 0),
    };
  }
}

/** The figures of the last days together, and the minutes that reviewers would have spent. */
export function lastDays(summary: AutopilotSummary, count: number, now: number): Omit<DayFigures, "day"> & { minutesSaved: number } {
  const first = new Date(now - (count - 1) * 86_400_000).toISOString().slice(0, 10);
  const days = summary.days.filter(({ day }) => day >= first);
  const sum = (of: (day: DayFigures) => number): number => days.reduce((all, day) => all + of(day), 0);
  const alone = sum((day) => day.alone);
  return {
    proposals: sum((day) => day.proposals),
    alone,
    audited: sum((day) => day.audited),
    disagreed: sum((day) => day.disagreed),
    objected: sum((day) => day.objected),
    demoted: sum((day) => day.demoted),
    minutesSaved: (alone * summary.reviewS) / 60,
  };
}

function keep<Value>(kept: Map<string, Value>, key: string, value: Value, most: number): void {
  kept.delete(key);
  kept.set(key, value);
  const [oldest] = kept.keys();
  if (kept.size > most && oldest !== undefined) kept.delete(oldest);
}

function rungIn(rung: JsonObject): Rung {
  return {
    sentence: wordsIn(rung.sentence),
    scope: objectIn(rung.scope),
    approved: countIn(rung.approved),
    rejected: countIn(rung.rejected),
    bound: textIn(rung.bound),
  };
}

function ruleIn(id: string, payload: JsonObject, at: number): AutopilotRule {
  const [evidence, history] = [objectIn(payload.evidence), objectIn(payload.history)];
  return {
    id,
    at,
    state: nameIn(payload.state) ?? "unknown",
    sentence: wordsIn(payload.sentence),
    author: nameIn(payload.author) ?? "learned",
    ratifiedBy: textIn(payload.by),
    decisions: countIn(evidence.decisions),
    rejections: countIn(evidence.rejections),
    bound: wordsIn(payload.bound),
    limits: wordsIn(payload.limits),
    uses: countIn(payload.uses),
    usesMax: numberIn(payload.uses_max),
    until: momentIn(payload.until),
    lastUsed: momentIn(payload.last_used),
    samples: textsIn(payload.samples).slice(0, 5).map((text) => cut(text, TEXT_MAX)),
    refused: textIn(payload.refused),
    states: listIn(history.states).slice(-LIST_MAX).map(listIn).map(([moment, state]) => ({ at: momentIn(moment) ?? at, state: nameIn(state) ?? "unknown" })),
    days: listIn(history.days).slice(-LIST_MAX).map(listIn).map(ruleDayIn),
    recent: [...cut(textIn(history.recent) ?? "", LIST_MAX)].map((one) => one === "a"),
  };
}

function ruleDayIn([day, approved, rejected, alone]: Json[]): RuleDay {
  return { day: nameIn(day) ?? "", approved: countIn(approved), rejected: countIn(rejected), alone: countIn(alone) };
}

function dayIn(day: JsonObject): DayFigures {
  const count = (name: string): number => countIn(day[name]);
  return {
    day: nameIn(day.day) ?? "",
    proposals: count("proposals"),
    alone: count("alone"),
    audited: count("audited"),
    disagreed: count("disagreed"),
    objected: count("objected"),
    demoted: count("demoted"),
  };
}

function modeIn(value: Json | undefined): Mode {
  return MODES.find((mode) => mode === value) ?? "off";
}

function countIn(value: Json | undefined): number {
  return Math.max(0, Math.floor(numberIn(value) ?? 0));
}

function nameIn(value: Json | undefined): string | null {
  const text = textIn(value);
  return text === null || text === "" ? null : cut(text, ID_MAX);
}

function wordsIn(value: Json | undefined): string {
  return cut(textIn(value) ?? "", TEXT_MAX);
}
