/** PURE. What participants offer: their tools as they last listed them. It is their own word, whether true or not. */

import type { Envelope } from "../envelope";
import { type JsonObject, isObject } from "../json";
import { same } from "./differences";
import type { Exchange } from "./exchanges";
import { listIn, objectIn, textIn } from "./fields";

export interface Tool {
  participant: string;
  name: string;
  description: string | null;
  schema: JsonObject | null;
  annotations: JsonObject;
  /** Which of its parts are not what they were when first seen here. */
  changed: string[];
  first: JsonObject;
}

const TOOLS_EACH_MAX = 1_000;
const PARTICIPANTS_MAX = 1_000;
const TRUSTED = ["description", "inputSchema", "annotations"] as const;

export class Tools {
  #all = new Map<string, Map<string, Tool>>();

  get(participant: string, name: string): Tool | undefined {
    return this.#all.get(participant)?.get(name);
  }

  of(participant: string): Tool[] {
    return [...(this.#all.get(participant)?.values() ?? [])];
  }

  /** Who lists a tool of that name. */
  offering(name: string): Tool[] {
    return [...this.#all.values()].map((tools) => tools.get(name)).filter((tool) => tool !== undefined);
  }

  /** An answer came; it may be a list of tools. */
  apply(exchange: Exchange, answer: Envelope): boolean {
    if (textIn(exchange.request.payload?.method) !== "tools/list") return false;
    const listed = listIn(objectIn(answer.payload?.result).tools);
    if (this.#all.size >= PARTICIPANTS_MAX && !this.#all.has(answer.from)) return false;
    const tools = this.#all.get(answer.from) ?? new Map<string, Tool>();
    for (const tool of listed.filter(isObject).slice(0, TOOLS_EACH_MAX)) {
      const name = textIn(tool.name);
      if (name !== null) tools.set(name, described(answer.from, name, tool, tools.get(name)));
    }
    this.#all.set(answer.from, tools);
    return listed.length > 0;
  }
}

function described(participant: string, name: string, tool: JsonObject, known: Tool | undefined): Tool {
  const first = known?.first ?? tool;
  return {
    participant,
    name,
    description: textIn(tool.description),
    schema: isObject(tool.inputSchema) ? tool.inputSchema : null,
    annotations: objectIn(tool.annotations),
    changed: TRUSTED.filter((part) => !same(first[part], tool[part])),
    first,
  };
}
