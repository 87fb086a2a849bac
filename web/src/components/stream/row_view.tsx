/** One row of the stream: when, who, what, and what can be done with it. */

import type { VNode } from "preact";

import { type Envelope, GATEWAY } from "../../envelope";
import type { Row } from "../../space/rows";
import type { Space } from "../../space/space";
import { visible } from "../../text";
import type { PageState } from "../app/page_state";
import { threadOf } from "./filter";
import { said } from "./row_text";
import { isQuiet } from "../values/summaries";
import { clock, whoIs } from "../values/text_view";

/** What a row looks like beside what is in it. */
export interface Look {
  /** The one that the keyboard is at. */
  current: boolean;
  /** Whether to offer what can be done with it: for the row that is pointed at, or that the keyboard is at. */
  tools: boolean;
  /** Counted from one, and out of how many; -1 while that grows. */
  place: number;
  outOf: number;
}

interface Drawn extends Look {
  version: number;
  node: VNode;
}

/** The rows of one list: what has not changed is the same element, which is not even looked at again. */
export class RowViews {
  #drawn = new Map<Row, Drawn>();
  #page: PageState;
  #space: Space;

  constructor(page: PageState, space: Space) {
    this.#page = page;
    this.#space = space;
  }

  /** Those in sight; what is out of sight is not kept. */
  of(rows: Row[], lookOf: (row: Row, at: number) => Look): VNode[] {
    const drawn = new Map(rows.map((row, at) => [row, this.#one(row, lookOf(row, at))]));
    this.#drawn = drawn;
    return [...drawn.values()].map(({ node }) => node);
  }

  #one(row: Row, look: Look): Drawn {
    const before = this.#drawn.get(row);
    if (before !== undefined && before.version === row.version && isSame(before, look)) return before;
    return { ...look, version: row.version, node: this.#draw(row, look) };
  }

  #draw(row: Row, { current, tools, place, outOf }: Look): VNode {
    const { envelope } = row;
    const [page, space] = [this.#page, this.#space];
    const source = envelope.from === GATEWAY ? " from-gateway" : "";
    const name = `row${source}${isQuiet(envelope.kind) ? " quiet-row" : ""}${current ? " current" : ""}`;
    return (
      <article
        key={row.key}
        class={name}
        data-key={row.key}
        data-kind={visible(envelope.kind, 60)}
        data-envelope={visible(envelope.id, 80)}
        tabIndex={-1}
        aria-posinset={place}
        aria-setsize={outOf}
        aria-label={visible(`${envelope.kind} from ${envelope.from}`, 120)}
        aria-current={current ? "true" : undefined}
      >
        {clock(row.at)}
        {whoIs(envelope.from, page.space.me)}
        <div class="said">{said({ row, space, page, version: row.version })}</div>
        {tools && <Tools page={page} space={space} envelope={envelope} />}
      </article>
    );
  }
}

function isSame(one: Look, other: Look): boolean {
  return one.current === other.current && one.tools === other.tools && one.place === other.place && one.outOf === other.outOf;
}

function Tools({ page, space, envelope }: { page: PageState; space: Space; envelope: Envelope }) {
  return (
    <div class="row-tools">
      <button type="button" title="Show only the thread of this envelope (t)" onClick={() => follow(page, space, envelope)}>
        thread
      </button>
      <button type="button" title="Show the raw JSON (v)" onClick={() => (page.dialog.value = { is: "raw", envelope })}>
        raw
      </button>
    </div>
  );
}

export function follow(page: PageState, space: Space, envelope: Envelope): void {
  page.filter.value = { ...page.filter.value, thread: threadOf(space.rows, envelope) };
}
