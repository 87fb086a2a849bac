/** The space as lanes, one for each participant, so that one sees who waited for whom; arrows lead from bar to bar. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import { lasting, visible } from "../../text";
import { usePageState, useLive } from "../app/page_state";
import { type Bar, type Lane, type Span, type Tone, barFrom, lanesOf } from "./timeline_lanes";
import { clockOf, hueOf } from "../values/text_view";

const SPANS: [words: string, ms: number][] = [
  ["1 minute", 60_000],
  ["5 minutes", 300_000],
  ["10 minutes", 600_000],
  ["30 minutes", 1_800_000],
  ["1 hour", 3_600_000],
  ["3 hours", 10_800_000],
];
const TONES: Tone[] = ["waits", "works", "thinks", "says"];
const LINES: Record<Tone, number> = { waits: 5, works: 15, thinks: 25, says: 35 };
const HIGH = 8;
const LANE = 48;
const NAMES = 130;
const NARROWEST = 200;
const SAID = 5;
/** Of the time that is shown: what is said within one is one bar, however wide the screen is. */
const STEPS = 160;

export function Timeline() {
  const page = useLive();
  const chosen = useSignal<number | null>(null);
  /** The time stands still while somebody goes from bar to bar. */
  const still = useSignal<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(800);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => (width.value = Math.max(NARROWEST, element.clientWidth - NAMES - 24)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const space = page.past.value ?? page.space;
  const now = still.value ?? page.now.value;
  const first = space.rows.list[0]?.at ?? now;
  const fitting = SPANS.findIndex(([, ms]) => ms > now - first);
  const chosenOrFitting = chosen.value ?? (fitting < 0 ? SPANS.length - 2 : fitting);
  const ms = SPANS[chosenOrFitting]?.[1] ?? 300_000;
  const last = space.rows.list.at(-1)?.at ?? now;
  const end = still.value ?? (page.past.value === null ? Math.max(now, last) : last + 1000);
  const span = { begin: end - ms, end, stepMs: ms / STEPS };
  const lanes = lanesOf(space, span);
  return (
    <section class="timeline" aria-labelledby="timeline-title">
      <header class="pane-head">
        <h2 id="timeline-title">Timeline</h2>
        <label>
          the last{" "}
          <select value={String(chosenOrFitting)} onChange={(event) => (chosen.value = Number(event.currentTarget.value))}>
            {SPANS.map(([words], at) => (
              <option key={words} value={String(at)}>
                {words}
              </option>
            ))}
          </select>
        </label>
      </header>
      <p class="legend">
        {TONES.map((tone) => (
          <span key={tone}>
            <i class={`swatch ${tone}`} /> {tone}
          </span>
        ))}
      </p>
      <div
        class="lanes"
        ref={box}
        onFocusIn={() => (still.value ??= end)}
        onFocusOut={(event) => {
          if (!(event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget))) still.value = null;
        }}
      >
        {lanes.length === 0 ? <p class="dim">Nothing happened in this period.</p> : <Lanes lanes={lanes} span={span} width={width.value} />}
      </div>
    </section>
  );
}

/** A grid to who hears it: a row for each participant, with its bars in the order of time. */
function Lanes({ lanes, span, width }: { lanes: Lane[]; span: Span; width: number }) {
  const page = usePageState();
  const grid = useRef<SVGSVGElement>(null);
  const reached = useSignal<string | null>(null);
  const bars = lanes.flatMap((lane) => lane.bars);
  // The way in for Tab is where one was, or what happened last.
  const stop = bars.find((bar) => nameOf(bar) === reached.value) ?? bars.reduce((one, other) => (other.from > one.from ? other : one));
  const show = (bar: Bar): void => {
    page.pane.value = "stream";
    page.row.value = bar.id;
    page.goTo.value = bar.id;
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Enter" || event.key === " ") show(stop);
    const next = barFrom(lanes, stop, event.key);
    if (next !== undefined) {
      reached.value = nameOf(next);
      const at = lanes.findIndex(({ name }) => name === next.lane);
      const bar = lanes[at]?.bars.findIndex((one) => one.key === next.key) ?? 0;
      grid.current?.querySelectorAll("[role=row]")[at]?.querySelectorAll<SVGElement>(".bar")[bar]?.focus();
    }
    if (next !== undefined || /^(Enter| |Arrow.*)$/.test(event.key)) event.preventDefault();
  };
  return (
    <svg
      ref={grid}
      width={NAMES + width}
      height={lanes.length * LANE + 24}
      role="grid"
      aria-readonly="true"
      aria-label={`activity of ${lanes.length} participants in the last ${lasting(span.end - span.begin)}`}
      onKeyDown={pressed}
    >
      <Ticks span={span} width={width} height={lanes.length * LANE} />
      {lanes.map((lane, at) => (
        <g key={lane.name} role="row" transform={`translate(0 ${at * LANE})`}>
          <text role="rowheader" class={`lane-name hue-${hueOf(lane.name)}`} x={NAMES - 10} y={LANE / 2 + 4} text-anchor="end">
            {visible(lane.name, 18)}
          </text>
          <line aria-hidden="true" class="lane-line" x1={NAMES} x2={NAMES + width} y1={LANE - 1} y2={LANE - 1} />
          {lane.bars.map((bar) => (
            <g
              key={bar.key}
              class={`bar ${bar.tone}`}
              role="gridcell"
              tabindex={bar === stop ? 0 : -1}
              aria-label={`${bar.words}, at ${clockOf(bar.from)}`}
              onClick={() => show(bar)}
              onFocus={() => (reached.value = nameOf(bar))}
            >
              <title>{bar.words}</title>
              <rect y={LINES[bar.tone]} height={HIGH} rx={3} {...placeOf(bar, span, width)} />
            </g>
          ))}
        </g>
      ))}
    </svg>
  );
}

/** The same envelope has a bar in the lane of who waits, and in that of who works for it. */
function nameOf(bar: Bar): string {
  return `${bar.key} ${bar.lane}`;
}

function placeOf(bar: Bar, { begin, end }: Span, all: number): { x: number; width: number } {
  const scale = all / (end - begin);
  const from = Math.max(begin, bar.from);
  const width = Math.max(bar.tone === "says" ? SAID : 3, (bar.to - from) * scale);
  const x = (from - begin) * scale;
  return { x: NAMES + x, width: Math.min(width, all - x) };
}

function Ticks({ span: { begin, end }, width, height }: { span: Span; width: number; height: number }) {
  const parts = width < 300 ? 2 : width < 600 ? 3 : 6;
  return (
    <g aria-hidden="true">
      {Array.from({ length: parts + 1 }, (_, at) => {
        const x = NAMES + (at / parts) * width;
        return (
          <g key={at}>
            <line class="tick" x1={x} x2={x} y1={0} y2={height} />
            <text class="tick-name" x={x} y={height + 16} text-anchor={at === parts ? "end" : "middle"}>
              {clockOf(begin + (at / parts) * (end - begin))}
            </text>
          </g>
        );
      })}
    </g>
  );
}
