/** The stream: every envelope as it happens, with filters and access to the history. */

import { useRef } from "preact/hooks";

import type { Envelope } from "../../envelope";
import { momentOf } from "../../space/space";
import { count, visible } from "../../text";
import { Composer } from "./composer";
import { usePageState, useLive } from "../app/page_state";
import { Filtered, NO_FILTER, isEmpty } from "./filter";
import { StreamList } from "./stream_list";

const KINDS = ["chat", "mcp", "mcp/proposal", "mcp/request", "reasoning", "stream", "participant", "capability", "space", "system"];
const TYPING_MS = 200;

/** The past does not grow: its end is not followed. */
const STILL = {
  get value(): boolean {
    return false;
  },
  set value(_following: boolean) {},
};

export function Stream() {
  const page = usePageState();
  page.version.value;
  const { history, following } = page;
  const past = page.past.value;
  const space = past ?? page.space;
  const filtered = useRef(new Filtered()).current;
  const rows = filtered.of(space.rows, page.filter.value);
  const earlier = (): void => {
    if (page.loaded.value && history.hasEarlier) void history.earlier();
  };
  return (
    <section class="stream-pane" aria-labelledby="stream-title">
      <header class="pane-head">
        <h2 id="stream-title">{past === null ? "Stream" : "History"}</h2>
        <Filters />
      </header>
      {past !== null && <PastBanner />}
      <Earlier few={rows.length === 0 || !isEmpty(page.filter.value)} onEarlier={earlier} />
      <StreamList
        key={past === null ? "now" : "past"}
        rows={rows}
        space={space}
        following={past === null ? following : STILL}
        onTop={earlier}
        onEnd={() => void history.later()}
      />
      {rows.length === 0 && (
        <p class="dim pad empty">{isEmpty(page.filter.value) ? "Nothing has happened yet." : "Nothing matches the filter."}</p>
      )}
      {past === null && !following.value && (
        <button type="button" class="to-end" title="Go to the newest envelope and follow the stream (b)" onClick={() => (following.value = true)}>
          ↓ Newest
        </button>
      )}
      <Composer />
    </section>
  );
}

function PastBanner() {
  const { history, now } = usePageState();
  const shown = history.past.value?.envelopes ?? [];
  const [first, last] = [shown[0], shown.at(-1)];
  return (
    <p class="banner">
      You are viewing the history
      {first !== undefined && last !== undefined && `: ${momentWords(first, now.peek())} to ${momentWords(last, now.peek())}`}
      {!history.hasLater && ", up to the newest when it was loaded"}.{" "}
      <button type="button" class="small" onClick={() => history.toNow()}>
        Back to live <kbd>b</kbd>
      </button>
    </p>
  );
}

/** Older ones come by themselves where there is something to scroll; with a filter there may not be. */
function Earlier({ few, onEarlier }: { few: boolean; onEarlier(): void }) {
  const { history, loaded } = usePageState();
  if (!loaded.value || !history.hasEarlier) return null;
  if (history.busy.value) {
    return (
      <p class="fetching" role="status">
        Loading…
      </p>
    );
  }
  if (!few) return null;
  return (
    <p class="banner dim">
      Only loaded envelopes are searched.{" "}
      <button type="button" class="small" onClick={onEarlier}>
        Load older ones
      </button>
    </p>
  );
}

function momentWords(envelope: Envelope, now: number): string {
  const at = new Date(momentOf(envelope));
  const time = at.toLocaleTimeString([], { hour12: false });
  return at.toDateString() === new Date(now).toDateString() ? time : `${at.toLocaleDateString()} ${time}`;
}

function Filters() {
  const page = useLive();
  const filter = page.filter.value;
  const timer = useRef<number | undefined>(undefined);
  const set = (change: Partial<typeof filter>): void => {
    page.filter.value = { ...page.filter.value, ...change };
  };
  const typed = (text: string): void => {
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => set({ text }), TYPING_MS);
  };
  return (
    <div class="filters" role="search" aria-label="filter the stream">
      <input
        type="search"
        id="filter-text"
        placeholder="Search (/)"
        aria-label="search text"
        defaultValue={filter.text}
        onInput={(event) => typed(event.currentTarget.value)}
      />
      <select aria-label="participant" value={filter.participant} onChange={(event) => set({ participant: event.currentTarget.value })}>
        <option value="">anyone</option>
        {page.space.participants.listed.slice(0, 500).map(({ id }) => (
          <option key={id} value={id}>
            {visible(id, 40)}
          </option>
        ))}
      </select>
      <select aria-label="kind" value={filter.kind} onChange={(event) => set({ kind: event.currentTarget.value })}>
        <option value="">any kind</option>
        {KINDS.map((kind) => (
          <option key={kind} value={kind}>
            {kind}
          </option>
        ))}
      </select>
      <input
        class="context"
        aria-label="context"
        placeholder="context"
        value={filter.context}
        onChange={(event) => set({ context: event.currentTarget.value.trim() })}
      />
      {!isEmpty(filter) && (
        <button
          type="button"
          class="small"
          onClick={() => {
            window.clearTimeout(timer.current);
            page.filter.value = NO_FILTER;
            const box = document.getElementById("filter-text");
            if (box instanceof HTMLInputElement) box.value = "";
          }}
        >
          {filter.thread === null ? "All" : `Thread of ${count(filter.thread.size)}`} ✕
        </button>
      )}
      <button type="button" class="small" onClick={() => (page.dialog.value = { is: "history" })}>
        History…
      </button>
    </div>
  );
}
