/** The rows of the stream, of which only those in sight are drawn, however many there are. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import type { Row } from "../space/rows";
import type { Space } from "../space/space";
import { useDesk } from "./desk";
import { RowView } from "./row_view";
import { Heights } from "./virtual";

const GUESS = 34;
const OVER = 6;
const NEAR_END_PX = 40;
const NEAR_TOP_PX = 200;

interface Props {
  rows: Row[];
  space: Space;
  following: { value: boolean };
  onTop?: () => void;
}

export function StreamList({ rows, space, following, onTop }: Props) {
  const desk = useDesk();
  desk.version.value;
  const box = useRef<HTMLDivElement>(null);
  const scroll = useSignal({ top: 0, height: 600 });
  const layout = useRef(new Layout()).current;
  layout.follow(rows);

  const { heights } = layout;
  const { top, height } = scroll.value;
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
    const firstSeen = following.value ? first : heights.rowAt(element.scrollTop);
    let [above, changed] = [0, 0];
    const drawn = element.querySelector<HTMLElement>(".rows-shown")?.offsetHeight ?? 0;
    const asKnown = Math.abs(drawn - (heights.offset(last) - heights.offset(first))) < 1;
    for (const child of asKnown ? [] : element.querySelectorAll<HTMLElement>("[data-key]")) {
      const at = layout.indexOf(Number(child.dataset["key"]));
      const change = layout.measure(at, child.offsetHeight);
      changed += Math.abs(change);
      if (at < firstSeen) above += change;
    }
    if (following.value) {
      element.scrollTop = total + element.clientHeight;
    } else if (above !== 0) element.scrollTop += above;
    if (changed > 0.5) scroll.value = { top: element.scrollTop, height: element.clientHeight };
  });

  const goTo = desk.goTo.value;
  useLayoutEffect(() => {
    const element = box.current;
    const row = goTo === null ? undefined : space.rows.of(goTo);
    if (element === null || row === undefined) return;
    const at = layout.indexOf(row.key);
    desk.goTo.value = null;
    if (at < 0) return;
    following.value = false;
    element.scrollTop = Math.max(0, heights.offset(at) - element.clientHeight / 3);
    scroll.value = { top: element.scrollTop, height: element.clientHeight };
  }, [goTo]);

  const scrolled = (): void => {
    const element = box.current;
    if (element === null) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END_PX;
    if (atEnd && following.value) return; // that was us, and all is drawn
    following.value = atEnd;
    scroll.value = { top: element.scrollTop, height: element.clientHeight };
    if (element.scrollTop < NEAR_TOP_PX) onTop?.();
  };

  return (
    <div class="rows" ref={box} onScroll={scrolled} tabIndex={0} role="feed" aria-label="Everything that happens" aria-busy={false}>
      <div class="rows-inside" style={{ height: `${total}px` }}>
        <div class="rows-shown" style={{ transform: `translateY(${heights.offset(first)}px)` }}>
          {shown.map((row, at) => (
            <article key={row.key} data-key={row.key} aria-posinset={first + at + 1} aria-setsize={rows.length} aria-label={`${row.envelope.kind} from ${row.envelope.from}`.slice(0, 120)}>
              <RowView row={row} space={space} version={row.version} current={desk.row.value === row.envelope.id} />
            </article>
          ))}
        </div>
      </div>
    </div>
  );
}

/** Heights by row, kept while rows are added at the end and cut off in front. */
class Layout {
  readonly heights = new Heights(GUESS);
  #rows: Row[] = [];
  #firstKey = 0;
  #known = new Map<Row, number>();
  /** Rows of one kind are often as high as the last one was. */
  #usual = new Map<string, number>();

  follow(rows: Row[]): void {
    const known = (at: number): number | undefined => {
      const row = rows[at];
      return row === undefined ? undefined : (this.#known.get(row) ?? this.#usual.get(row.envelope.kind));
    };
    if (rows !== this.#rows || (rows[0]?.key ?? 0) !== this.#firstKey || rows.length < this.heights.length) {
      if (this.#known.size > rows.length + 5_000) this.#known = new Map(rows.filter((row) => this.#known.has(row)).map((row) => [row, this.#known.get(row) ?? GUESS]));
      this.#rows = rows;
      this.#firstKey = rows[0]?.key ?? 0;
      this.heights.reset(rows.length, known);
    } else if (rows.length > this.heights.length) this.heights.grow(rows.length, known);
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
    this.#known.set(row, height);
    if (this.#usual.size < 100) this.#usual.set(row.envelope.kind, height);
    return this.heights.measure(at, height);
  }
}
