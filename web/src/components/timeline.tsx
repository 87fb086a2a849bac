/** The space as lanes, one for each participant, so that one sees who waited for whom. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import type { Space } from "../space/space";
import { lasting, visible } from "../text";
import { useDesk, useLive } from "./desk";
import { hueOf } from "./text_view";
import { operationOf } from "./summaries";

interface Bar {
  lane: string;
  from: number;
  to: number;
  tone: "waits" | "works" | "thinks" | "says";
  words: string;
  id: string;
  row: number;
}

const SPANS: [words: string, ms: number][] = [
  ["1 minute", 60_000],
  ["5 minutes", 300_000],
  ["30 minutes", 1_800_000],
  ["3 hours", 10_800_000],
];
const LANE = 46;
const NAMES = 130;
const NARROWEST = 420;
const BARS_MAX = 2_000;
const LANES_MAX = 40;

export function Timeline() {
  const desk = useLive();
  const chosen = useSignal<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(800);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => (width.value = Math.max(NARROWEST, element.clientWidth - NAMES - 24)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const space = desk.past.value ?? desk.space;
  const first = space.rows.list[0]?.at ?? desk.now.value;
  const fitting = SPANS.findIndex(([, ms]) => ms > desk.now.value - first);
  const span = chosen.value ?? (fitting < 0 ? SPANS.length - 2 : fitting);
  const ms = SPANS[span]?.[1] ?? 300_000;
  const last = space.rows.list.at(-1)?.at ?? desk.now.value;
  const end = desk.past.value === null ? Math.max(desk.now.value, last) : last + 1000;
  const begin = end - ms;
  const bars = barsOf(space, begin, end);
  const lanes = [...new Set(bars.map((bar) => bar.lane))].sort().slice(0, LANES_MAX);
  return (
    <section class="timeline" aria-labelledby="timeline-title">
      <header class="pane-head">
        <h2 id="timeline-title">Timeline</h2>
        <label>
          the last{" "}
          <select value={String(span)} onChange={(event) => (chosen.value = Number(event.currentTarget.value))}>
            {SPANS.map(([words], at) => (
              <option key={words} value={String(at)}>
                {words}
              </option>
            ))}
          </select>
        </label>
      </header>
      <p class="legend">
        {(["waits", "works", "thinks", "says"] as const).map((tone) => (
          <span key={tone}>
            <i class={`swatch ${tone}`} /> {tone}
          </span>
        ))}
      </p>
      <div class="lanes" ref={box} tabIndex={0} role="group" aria-label="lanes">
        {lanes.length === 0 ? (
          <p class="dim">Nothing happened in this time.</p>
        ) : (
          <svg width={NAMES + width.value} height={lanes.length * LANE + 24} role="img" aria-label={`what ${lanes.length} participants did in the last ${lasting(ms)}`}>
            <Ticks begin={begin} ms={ms} width={width.value} height={lanes.length * LANE} />
            {lanes.map((lane, at) => (
              <g key={lane} transform={`translate(0 ${at * LANE})`}>
                <text class={`lane-name hue-${hueOf(lane)}`} x={NAMES - 10} y={LANE / 2 + 4} text-anchor="end">
                  {visible(lane, 18)}
                </text>
                <line class="lane-line" x1={NAMES} x2={NAMES + width.value} y1={LANE - 1} y2={LANE - 1} />
              </g>
            ))}
            {bars.map((bar) => (
              <BarView key={bar.id + bar.tone + bar.lane} bar={bar} top={lanes.indexOf(bar.lane) * LANE} begin={begin} ms={ms} width={width.value} />
            ))}
          </svg>
        )}
      </div>
    </section>
  );
}

function BarView({ bar, top, begin, ms, width: all }: { bar: Bar; top: number; begin: number; ms: number; width: number }) {
  const desk = useDesk();
  if (top < 0) return null;
  const x = NAMES + (Math.max(0, bar.from - begin) / ms) * all;
  const width = Math.max(bar.tone === "says" ? 5 : 3, ((bar.to - Math.max(begin, bar.from)) / ms) * all);
  const show = (): void => {
    desk.pane.value = "stream";
    desk.goTo.value = bar.id;
    desk.row.value = bar.id;
  };
  return (
    <g class={`bar ${bar.tone}`} onClick={show}>
      <title>{bar.words}</title>
      <rect x={x} y={top + 6 + bar.row * 11} width={Math.min(width, NAMES + all - x)} height={9} rx={3} />
    </g>
  );
}

function Ticks({ begin, ms, width, height }: { begin: number; ms: number; width: number; height: number }) {
  const parts = width < 600 ? 3 : 6;
  return (
    <>
      {Array.from({ length: parts + 1 }, (_, at) => {
        const x = NAMES + (at / parts) * width;
        return (
          <g key={at}>
            <line class="tick" x1={x} x2={x} y1={0} y2={height} />
            <text class="tick-name" x={x} y={height + 16} text-anchor={at === parts ? "end" : "middle"}>
              {new Date(begin + (at / parts) * ms).toLocaleTimeString("en-GB")}
            </text>
          </g>
        );
      })}
    </>
  );
}

/** Who waits has a bar until it is answered; who works for it has one at the same time. */
function barsOf(space: Space, begin: number, end: number): Bar[] {
  const bars: Bar[] = [];
  const add = (bar: Bar): void => {
    if (bar.to >= begin && bar.from <= end && bars.length < BARS_MAX) bars.push(bar);
  };
  for (let at = space.rows.list.length - 1; at >= 0 && bars.length < BARS_MAX; at -= 1) {
    const row = space.rows.list[at];
    if (row === undefined || row.at < begin - 86_400_000) break;
    const { envelope } = row;
    const { id, from } = envelope;
    if (envelope.kind === "mcp/proposal") {
      const proposal = space.proposals.get(id);
      const decided = proposal?.fulfilments[0]?.at ?? proposal?.withdrawn?.at ?? end;
      add({ lane: from, from: row.at, to: decided, tone: "waits", words: `${from} waits for a decision on ${operationOf(envelope.payload)}: ${lasting(decided - row.at)}`, id, row: 0 });
    } else if (envelope.kind === "mcp/request") {
      const exchange = space.exchanges.get(id);
      if (exchange === undefined) continue;
      const answered = exchange.answers[0]?.at ?? end;
      const what = operationOf(envelope.payload);
      add({ lane: from, from: row.at, to: answered, tone: "waits", words: `${from} waits for ${what}: ${lasting(answered - row.at)}`, id, row: 0 });
      for (const target of envelope.to ?? []) {
        add({ lane: target, from: row.at, to: answered, tone: "works", words: `${target} does ${what} for ${from}: ${lasting(answered - row.at)}`, id, row: 1 });
      }
    } else if (envelope.kind === "reasoning/start") {
      const ended = space.reasonings.get(id)?.endedAt ?? end;
      add({ lane: from, from: row.at, to: ended, tone: "thinks", words: `${from} thinks: ${lasting(ended - row.at)}`, id, row: 2 });
    } else if (envelope.kind === "chat") {
      add({ lane: from, from: row.at, to: row.at, tone: "says", words: `${from} says something`, id, row: 2 });
    }
  }
  return bars;
}
