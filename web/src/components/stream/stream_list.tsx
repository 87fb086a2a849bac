/** The rows of the stream, of which only those in sight are drawn, however many there are. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";

import type { Envelope } from "../../envelope";
import type { Row } from "../../space/rows";
import type { Space } from "../../space/space";
import { usePageState } from "../app/page_state";
import { type Look, RowViews } from "./row_view";
import { Heights } from "./virtual_list";

const GUESS = 34;
const OVER = 6;
const NEAR_END_PX = 40;
const NEAR_TOP_PX = 200;
/** Where the row that is looked at is gone, one of the next so many is not. */
const SOUGHT = 200;
const KNOWN_SLACK = 5_000;

interface Props {
  rows: Row[];
  space: Space;
  following: { value: boolean };
  onTop?: () => void;
  onEnd?: () => void;
}

export function StreamList({ rows, space, following, onTop, onEnd }: Props) {
  const page = usePageState();
  page.version.value;
  const box = useRef<HTMLDivElement>(null);
  const scroll = useSignal({ top: 0, height: 600 });
  const layout = useRef(new Layout()).current;
  const views = useMemo(() => new RowViews(page, space), [page, space]);
  /** The row with the pointer over it, and the one with the focus in it, by their keys. */
  const pointed = useSignal<number | null>(null);
  const focused = useSignal<number | null>(null);
  const sought = useRef<number | null>(null);
  /** The row to stay at while what is round it is measured, by its key. */
  const aim = useRef<number | null>(null);
  /** By how much what is looked at has moved, because rows came or went above it. */
  const moved = useRef(0);
  moved.current += layout.follow(rows, scroll.peek().top + moved.current, (id) => space.rows.of(id));

  const { heights } = layout;
  const { height } = scroll.value;
  const top = scroll.value.top + moved.current;
  const total = heights.total;
  const seenTop = following.value ? Math.max(0, total - height) : top;
  const first = Math.max(0, heights.rowAt(seenTop) - OVER);
  const last = Math.min(rows.length, heights.rowAt(seenTop + height) + 1 + OVER);
  const shown = rows.slice(first, last);

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => (scroll.value = { top: element.scrollTop, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const shift = moved.current;
    moved.current = 0;
    if (shift !== 0 && !following.value) element.scrollTop += shift;
    const firstSeen = following.value ? first : heights.rowAt(element.scrollTop);
    let [above, changed] = [0, 0];
    const drawn = element.querySelector<HTMLElement>(".rows-shown")?.offsetHeight ?? 0;
    const asKnown = Math.abs(drawn - (heights.offset(last) - heights.offset(first))) < 1;
    for (const child of asKnown ? [] : element.querySelectorAll<HTMLElement>(".row")) {
      const at = layout.indexOf(Number(child.dataset["key"]));
      const change = layout.measure(at, child.offsetHeight);
      changed += Math.abs(change);
      if (at < firstSeen) above += change;
    }
    if (following.value) {
      element.scrollTop = total + element.clientHeight;
    } else if (aim.current !== null && changed > 0.5) element.scrollTop = placed(layout, aim.current, element);
    else if (above !== 0) element.scrollTop += above;
    if (changed <= 0.5) aim.current = null;
    if (changed > 0.5 || shift !== 0) scroll.value = { top: element.scrollTop, height: element.clientHeight };
  });

  const goTo = page.goTo.value;
  useLayoutEffect(() => {
    const element = box.current;
    const row = goTo === null ? undefined : space.rows.of(goTo);
    if (element === null || row === undefined) return;
    const at = layout.indexOf(row.key);
    page.goTo.value = null;
    if (at < 0) return;
    following.value = false;
    sought.current = aim.current = row.key;
    element.scrollTop = placed(layout, row.key, element);
    scroll.value = { top: element.scrollTop, height: element.clientHeight };
  }, [goTo]);

  // Who goes to a row with keys goes on from there: to what is in it, and to what can be done with it.
  useLayoutEffect(() => {
    if (sought.current === null) return;
    const row = box.current?.querySelector<HTMLElement>(`.row[data-key="${sought.current}"]`);
    if (row == null) return;
    sought.current = null;
    row.focus({ preventScroll: true });
  });

  const scrolled = (): void => {
    const element = box.current;
    if (element === null) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END_PX;
    if (atEnd && following.value) return; // that was us, and all is drawn
    following.value = atEnd;
    scroll.value = { top: element.scrollTop, height: element.clientHeight };
    if (element.scrollTop < NEAR_TOP_PX) onTop?.();
    if (atEnd) onEnd?.();
  };

  const current = page.row.value;
  const outOf = following.value ? -1 : rows.length;
  const lookOf = (row: Row, at: number): Look => {
    const isCurrent = row.envelope.id === current;
    return { current: isCurrent, tools: isCurrent || row.key === pointed.value || row.key === focused.value, place: first + at + 1, outOf };
  };
  return (
    <div
      class="rows"
      ref={box}
      onScroll={scrolled}
      onPointerOver={(event) => (pointed.value = keyAt(event.target))}
      onPointerLeave={() => (pointed.value = null)}
      onFocusIn={(event) => (focused.value = keyAt(event.target))}
      onFocusOut={() => (focused.value = null)}
      onClick={(event) => (page.row.value = rows[layout.indexOf(keyAt(event.target) ?? -1)]?.envelope.id ?? current)}
      tabIndex={0}
      role={rows.length > 0 ? "feed" : "group"}
      aria-label="Stream of envelopes"
      aria-busy={false}
    >
      <div class="rows-inside" style={{ height: `${total}px` }}>
        <div class="rows-shown" style={{ transform: `translateY(${heights.offset(first)}px)` }}>
          {views.of(shown, lookOf)}
        </div>
      </div>
    </div>
  );
}

/** Where to scroll to, so that a row stands a third from the top. */
function placed(layout: Layout, key: number, element: HTMLElement): number {
  return Math.max(0, layout.heights.offset(layout.indexOf(key)) - element.clientHeight / 3);
}

function keyAt(target: EventTarget | null): number | null {
  const row = target instanceof Element ? target.closest<HTMLElement>(".row") : null;
  return row === null ? null : Number(row.dataset["key"]);
}

/** Heights by row, kept while rows are added at the end and cut off in front. */
class Layout {
  readonly heights = new Heights(GUESS);
  #rows: Row[] = [];
  #firstKey = 0;
  /** By envelope: rows are made anew when older ones are told before them. */
  #known = new Map<Envelope, number>();
  /** Rows of one kind are often as high as the last one was. */
  #usual = new Map<string, number>();

  /** Returns how far the row at `top` lies from where it was. */
  follow(rows: Row[], top: number, rowOf: (id: string) => Row | undefined): number {
    const known = (at: number): number | undefined => {
      const row = rows[at];
      return row === undefined ? undefined : (this.#known.get(row.envelope) ?? this.#usual.get(row.envelope.kind));
    };
    if (rows !== this.#rows || (rows[0]?.key ?? 0) !== this.#firstKey || rows.length < this.heights.length) {
      if (this.#known.size > rows.length + KNOWN_SLACK) this.#forgetAllBut(rows);
      const at = this.heights.rowAt(top);
      const [seen, was] = [this.#rows.slice(at, at + SOUGHT), this.heights.offset(at)];
      this.#rows = rows;
      this.#firstKey = rows[0]?.key ?? 0;
      this.heights.reset(rows.length, known);
      return this.#placeOf(seen, rowOf, was);
    }
    if (rows.length > this.heights.length) this.heights.grow(rows.length, known);
    return 0;
  }

  #forgetAllBut(rows: Row[]): void {
    const kept = rows.filter(({ envelope }) => this.#known.has(envelope));
    this.#known = new Map(kept.map(({ envelope }) => [envelope, this.#known.get(envelope) ?? GUESS]));
  }

  /** How far the first of these rows that is still here lies from where they began. */
  #placeOf(seen: Row[], rowOf: (id: string) => Row | undefined, was: number): number {
    let above = 0;
    for (const { envelope } of seen) {
      const place = this.indexOf(rowOf(envelope.id)?.key ?? -1);
      if (place >= 0) return this.heights.offset(place) - above - was;
      above += this.#known.get(envelope) ?? GUESS;
    }
    return 0;
  }

  /** By bisection: keys only grow. */
  indexOf(key: number): number {
    let [low, high] = [0, this.#rows.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.#rows[middle]?.key ?? 0;
      if (found === key) return middle;
      if (found < key) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  measure(at: number, height: number): number {
    const row = this.#rows[at];
    if (row === undefined || height === 0) return 0;
    this.#known.set(row.envelope, height);
    if (this.#usual.size < 100) this.#usual.set(row.envelope.kind, height);
    return this.heights.measure(at, height);
  }
}
