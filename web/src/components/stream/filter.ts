/** PURE. Which rows of the stream are shown: by participant, kind, context and text. */

import type { Envelope } from "../../envelope";
import type { Json } from "../../json";
import { globFits } from "../../space/capability_match";
import type { Row, Rows } from "../../space/rows";

export interface Filter {
  participant: string;
  kind: string;
  context: string;
  text: string;
  /** Only what hangs together with these envelopes. */
  thread: ReadonlySet<string> | null;
}

export const NO_FILTER: Filter = { participant: "", kind: "", context: "", text: "", thread: null };

export function isEmpty(filter: Filter): boolean {
  return !filter.participant && !filter.kind && !filter.context && !filter.text && filter.thread === null;
}

export function rowPasses(filter: Filter, row: Row): boolean {
  return passes(filter, row.envelope) || row.folded.some((envelope) => passes(filter, envelope));
}

function passes(filter: Filter, envelope: Envelope): boolean {
  const { participant, kind, context, text, thread } = filter;
  if (thread !== null && !thread.has(envelope.id)) return false;
  if (participant && envelope.from !== participant && !(envelope.to?.includes(participant) ?? false)) return false;
  if (kind && !(globFits(kind, envelope.kind) || envelope.kind.startsWith(`${kind}/`))) return false;
  if (context && !isWithin(context, envelope)) return false;
  return !text || says(envelope, text.toLowerCase());
}

function isWithin(context: string, { id, context: own = "" }: Envelope): boolean {
  return own === context || own.startsWith(`${context}/`) || id === context;
}

function says(envelope: Envelope, text: string): boolean {
  if (envelope.id === text || envelope.from.toLowerCase().includes(text) || envelope.kind.includes(text)) return true;
  return contains(envelope.payload, text, 0);
}

function contains(value: Json | undefined, text: string, depth: number): boolean {
  if (typeof value === "string") return value.toLowerCase().includes(text);
  if (typeof value === "number" || typeof value === "boolean") return String(value) === text;
  if (typeof value !== "object" || value === null || depth > 32) return false;
  if (Array.isArray(value)) return value.some((item) => contains(item, text, depth + 1));
  return Object.entries(value).some(([name, item]) => name.toLowerCase().includes(text) || contains(item, text, depth + 1));
}

/** The rows that pass, kept up as rows come and go: what was looked at once is not looked at again. */
export class Filtered {
  #filter: Filter | null = null;
  #rows: Rows | null = null;
  #list: Row[] = [];
  #lastKey = -1;
  #cut = 0;

  of(rows: Rows, filter: Filter): Row[] {
    if (isEmpty(filter)) {
      this.#filter = null;
      return rows.list;
    }
    if (rows !== this.#rows || filter !== this.#filter) {
      this.#rows = rows;
      this.#filter = filter;
      this.#list = [];
      this.#lastKey = -1;
    }
    const first = rows.list[0]?.key ?? 0;
    if (rows.cut !== this.#cut) {
      this.#cut = rows.cut;
      this.#list = this.#list.filter((row) => row.key >= first);
    }
    for (let at = Math.max(0, this.#lastKey + 1 - first); at < rows.list.length; at += 1) {
      const row = rows.list[at];
      if (row !== undefined && rowPasses(filter, row)) this.#list.push(row);
    }
    this.#lastKey = rows.list.at(-1)?.key ?? -1;
    return this.#list;
  }
}

/** The ids of all that hangs together with an envelope, through `correlation_id` and `context`, among these rows. */
export function threadOf(rows: Rows, start: Envelope): Set<string> {
  const links = new Map<string, string[]>();
  const tie = (one: string, other: string): void => {
    if (!links.get(one)?.push(other)) links.set(one, [other]);
  };
  for (const row of rows.list) {
    for (const { id, correlation_id: about = [], context } of [row.envelope, ...row.folded]) {
      for (const other of context === undefined ? about : [...about, context.split("/", 1)[0] ?? ""]) {
        tie(id, other);
        tie(other, id);
      }
    }
  }
  const found = new Set([start.id]);
  for (const id of found) {
    for (const other of links.get(id) ?? []) found.add(other);
    if (found.size > 10_000) break;
  }
  return found;
}
