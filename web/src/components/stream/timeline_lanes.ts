/** PURE. The space as lanes: for each participant the bars that say when it waited, worked, thought and spoke. */

import type { Row } from "../../space/rows";
import type { Space } from "../../space/space";
import { lasting, visible } from "../../text";
import { decidingIn } from "../../space/proposals";
import { operationOf } from "../values/summaries";

export type Tone = "waits" | "works" | "thinks" | "says";

export interface Bar {
  key: string;
  /** The envelope that it began with. */
  id: string;
  lane: string;
  tone: Tone;
  from: number;
  to: number;
  words: string;
  /** How much was said in it. */
  times: number;
}

export interface Lane {
  name: string;
  /** By their beginnings. */
  bars: Bar[];
}

/** The time that is looked at; what is said within one step is one bar. */
export interface Span {
  begin: number;
  end: number;
  stepMs: number;
}

const BARS_MAX = 2_000;
const LANES_MAX = 40;
/** Nothing that began longer before is looked for. */
const BEFORE_MS = 86_400_000;

/** The lanes, by name. Who waits has a bar until it is answered; who works for it has one at the same time. */
export function lanesOf(space: Space, span: Span): Lane[] {
  const lanes = new Map<string, Map<string, Bar>>();
  let count = 0;
  for (let at = space.rows.list.length - 1; at >= 0 && count < BARS_MAX; at -= 1) {
    const row = space.rows.list[at];
    if (row === undefined || row.at < span.begin - BEFORE_MS) break;
    for (const bar of barsOf(space, row, span)) {
      if (bar.to < span.begin || bar.from > span.end) continue;
      const lane = lanes.get(bar.lane);
      if (lane === undefined && lanes.size >= LANES_MAX) continue;
      const before = lane?.get(bar.key);
      if (before === undefined) count += 1;
      lanes.set(bar.lane, (lane ?? new Map<string, Bar>()).set(bar.key, before === undefined ? bar : together(bar, before)));
    }
  }
  return [...lanes]
    .map(([name, bars]) => ({ name, bars: [...bars.values()].sort((one, other) => one.from - other.from) }))
    .sort((one, other) => one.name.localeCompare(other.name));
}

function barsOf(space: Space, { envelope, at }: Row, { end, stepMs }: Span): Bar[] {
  const { id, from } = envelope;
  const bar = (lane: string, tone: Tone, to: number, does: string): Bar => {
    const words = `${visible(lane, 60)} ${does}: ${lasting(to - at)}${to === end ? " so far" : ""}`;
    return { key: `${id} ${tone}`, id, lane, tone, from: at, to, words, times: 1 };
  };
  switch (envelope.kind) {
    case "mcp/proposal": {
      const proposal = space.proposals.get(id);
      const decidedAt = (proposal && (decidingIn(proposal)?.at ?? proposal.withdrawn?.at ?? proposal.expiresAt)) ?? end;
      return [bar(from, "waits", decidedAt, `waits for a decision on ${operationOf(envelope.payload)}`)];
    }
    case "mcp/request": {
      const exchange = space.exchanges.get(id);
      if (exchange === undefined) return [];
      const answeredAt = exchange.answers[0]?.at ?? end;
      const what = operationOf(envelope.payload);
      const works = (envelope.to ?? []).map((target) => bar(target, "works", answeredAt, `runs ${what} for ${visible(from, 60)}`));
      return [bar(from, "waits", answeredAt, `waits for ${what}`), ...works];
    }
    case "reasoning/start":
      return [bar(from, "thinks", space.reasonings.get(id)?.endedAt ?? end, "thinks")];
    case "chat":
      return [{ ...bar(from, "says", at, ""), key: `${Math.floor(at / stepMs)} says`, words: `${visible(from, 60)} sends a message` }];
    default:
      return [];
  }
}

/** Two bars of things said, as one. */
function together(one: Bar, other: Bar): Bar {
  const times = one.times + other.times;
  return { ...one, to: Math.max(one.to, other.to), times, words: `${visible(one.lane, 60)} sends ${times} messages` };
}

/** The bar that an arrow leads to: along the lane, or to what is nearest in time in the one above or below. */
export function barFrom(lanes: Lane[], from: Bar, key: string): Bar | undefined {
  const above = lanes.findIndex(({ name }) => name === from.lane);
  const bars = lanes[above]?.bars ?? [];
  const at = bars.findIndex((bar) => bar.key === from.key);
  switch (key) {
    case "ArrowRight":
      return bars[at + 1];
    case "ArrowLeft":
      return bars[at - 1];
    case "Home":
      return bars[0];
    case "End":
      return bars.at(-1);
    case "ArrowDown":
      return nearest(lanes[above + 1]?.bars ?? [], from.from);
    case "ArrowUp":
      return nearest(lanes[above - 1]?.bars ?? [], from.from);
    default:
      return undefined;
  }
}

function nearest(bars: Bar[], at: number): Bar | undefined {
  const [first, ...rest] = bars;
  return rest.reduce((best, bar) => (best !== undefined && Math.abs(bar.from - at) < Math.abs(best.from - at) ? bar : best), first);
}
