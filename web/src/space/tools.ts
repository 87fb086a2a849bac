/** PURE. What participants offer: their tools as they last listed them. It is their own word, whether true or not. */

import type { Envelope } from "../envelope";
import { type JsonObject, isObject } from "../json";
import { type Difference, differences, same } from "./differences";
import type { Exchange } from "./exchanges";
import { listIn, objectIn, textIn, textsIn } from "./fields";

export interface Tool {
  participant: string;
  name: string;
  description: string | null;
  schema: JsonObject | null;
  annotations: JsonObject;
  /** Which of its parts are not what they were when first seen here, or by its participant, as far as that says so. */
  changed: string[];
  /** False: it was not among them when they were last listed. */
  listed: boolean;
  first: JsonObject;
  now: JsonObject;
}

/** A tool as it was when somebody proposed to use it; null: nobody had listed it, and it is not seen yet. */
interface Noted {
  participant: string;
  name: string;
  tool: Tool | null;
}

/** What a tool was, and what became of it. */
export interface Change {
  was: Tool;
  is: Tool;
  /** Empty where it is no longer listed, and else as it was. */
  changes: Difference[];
}

const TOOLS_EACH_MAX = 1_000;
const PARTICIPANTS_MAX = 1_000;
const NOTED_MAX = 4_000;
const TARGETS_MAX = 8;
const TRUSTED = ["description", "inputSchema", "outputSchema", "annotations"] as const;

export class Tools {
  #all = new Map<string, Map<string, Tool>>();
  /** Who said that its tools are others now, and has not listed them since. */
  #stale = new Set<string>();
  /** Proposal -> the tools that it would use. */
  #noted = new Map<string, Noted[]>();
  #unseen = new Map<string, Set<Noted>>();

  get(participant: string, name: string): Tool | undefined {
    return this.#all.get(participant)?.get(name);
  }

  of(participant: string): Tool[] {
    return [...(this.#all.get(participant)?.values() ?? [])].filter(({ listed }) => listed);
  }

  /** Who lists a tool of that name. */
  offering(name: string): Tool[] {
    return [...this.#all.values()].map((tools) => tools.get(name)).filter((tool): tool is Tool => tool?.listed === true);
  }

  isStale(participant: string): boolean {
    return this.#stale.has(participant);
  }

  /** Somebody said that its tools are others now. */
  outdated(participant: string): void {
    if (this.#all.has(participant)) this.#stale.add(participant);
  }

  /** An answer came; it may be a list of tools. */
  apply(exchange: Exchange, answer: Envelope): boolean {
    const { payload } = exchange.request;
    if (textIn(payload?.method) !== "tools/list" || answer.payload?.result === undefined) return false;
    const result = objectIn(answer.payload.result);
    const listed = listIn(result.tools).filter(isObject).slice(0, TOOLS_EACH_MAX);
    if (this.#all.size >= PARTICIPANTS_MAX && !this.#all.has(answer.from)) return false;
    const tools = this.#all.get(answer.from) ?? new Map<string, Tool>();
    const isWhole = objectIn(payload?.params).cursor === undefined && result.nextCursor === undefined;
    if (isWhole) for (const [name, tool] of tools) tools.set(name, { ...tool, listed: false });
    for (const tool of listed) {
      const name = textIn(tool.name);
      if (name !== null) tools.set(name, described(answer.from, name, tool, tools.get(name)));
    }
    this.#all.set(answer.from, tools);
    this.#stale.delete(answer.from);
    this.#see(answer.from, tools);
    return listed.length > 0;
  }

  /** Keep what a tool is while somebody proposes to use it, so that it can be told when it is something else. */
  note(proposal: string, targets: string[], name: string): void {
    if (this.#noted.has(proposal)) return;
    const whose = targets.length > 0 ? targets : this.offering(name).map(({ participant }) => participant);
    const noted = whose
      .slice(0, TARGETS_MAX)
      .map((participant) => ({ participant, name, tool: this.get(participant, name) ?? null }));
    this.#noted.set(proposal, noted);
    for (const one of noted.filter(({ tool }) => tool === null)) {
      this.#unseen.set(one.participant, (this.#unseen.get(one.participant) ?? new Set()).add(one));
    }
    const [oldest] = this.#noted;
    if (this.#noted.size > NOTED_MAX && oldest !== undefined) this.#forget(...oldest);
  }

  /** What a tool was when it was proposed to use it (or first seen after that), where it is something else now. */
  changedSince(proposal: string, participant: string): Change | null {
    const was = this.#noted.get(proposal)?.find((one) => one.participant === participant)?.tool;
    const is = was == null ? undefined : this.get(participant, was.name);
    if (was == null || is === undefined || was === is) return null;
    const changes = differences(trusted(was.now), trusted(is.now));
    return changes.length > 0 || !is.listed ? { was, is, changes } : null;
  }

  /** Know of what another book knows and this one does not. */
  take(other: Tools): void {
    for (const [participant, tools] of other.#all) if (!this.#all.has(participant)) this.#all.set(participant, tools);
    for (const participant of other.#stale) this.#stale.add(participant);
    for (const [proposal, noted] of other.#noted) if (!this.#noted.has(proposal)) this.#noted.set(proposal, noted);
  }

  #see(participant: string, tools: Map<string, Tool>): void {
    for (const one of this.#unseen.get(participant) ?? []) {
      one.tool = tools.get(one.name) ?? null;
      if (one.tool !== null) this.#seen(one);
    }
  }

  #forget(proposal: string, noted: Noted[]): void {
    this.#noted.delete(proposal);
    for (const one of noted) this.#seen(one);
  }

  #seen(one: Noted): void {
    const unseen = this.#unseen.get(one.participant);
    if (unseen?.delete(one) === true && unseen.size === 0) this.#unseen.delete(one.participant);
  }
}

function described(participant: string, name: string, tool: JsonObject, known: Tool | undefined): Tool {
  const first = known?.first ?? tool;
  const seen = TRUSTED.filter((part) => !same(first[part], tool[part]));
  const told = textsIn(objectIn(objectIn(tool._meta)["mew/changed"]).fields).slice(0, 16);
  return {
    participant,
    name,
    description: textIn(tool.description),
    schema: isObject(tool.inputSchema) ? tool.inputSchema : null,
    annotations: objectIn(tool.annotations),
    changed: [...new Set([...seen, ...told])],
    listed: true,
    first,
    now: tool,
  };
}

function trusted(tool: JsonObject): JsonObject {
  return Object.fromEntries(TRUSTED.flatMap((part) => (tool[part] === undefined ? [] : [[part, tool[part]] as const])));
}
