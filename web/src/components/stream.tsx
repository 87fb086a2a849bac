/** The stream: every envelope, as it happens, with filters, and a way back into the history. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { count, visible } from "../text";
import { Composer } from "./composer";
import { useDesk, useLive } from "./desk";
import { Filtered, NO_FILTER, isEmpty } from "./filter";
import { StreamList } from "./stream_list";

const KINDS = ["chat", "mcp", "mcp/proposal", "mcp/request", "reasoning", "stream", "participant", "capability", "space", "system"];
const TYPING_MS = 200;

export function Stream() {
  const desk = useDesk();
  desk.version.value;
  const past = desk.past.value;
  const space = past ?? desk.space;
  const following = useSignal(true);
  const filtered = useRef(new Filtered()).current;
  const rows = filtered.of(space.rows, desk.filter.value);
  const older = desk.older.value.is;
  useEffect(() => {
    following.value = past === null;
  }, [past]);
  const top = (): void => {
    if (past === null && older === "more" && desk.loaded.value) void desk.loadOlder();
  };
  return (
    <section class="stream-pane" aria-labelledby="stream-title">
      <header class="pane-head">
        <h2 id="stream-title">{past === null ? "Everything" : "History"}</h2>
        <Filters />
      </header>
      {past !== null && (
        <p class="banner">
          This is what was, not what is.{" "}
          <button type="button" class="small" onClick={() => (desk.past.value = null)}>
            Back to now
          </button>
        </p>
      )}
      {past === null && older === "loading" && <p class="banner dim">Fetching older envelopes…</p>}
      <StreamList key={past === null ? "now" : "past"} rows={rows} space={space} following={following} onTop={top} />
      {rows.length === 0 && (
        <p class="dim pad empty">{isEmpty(desk.filter.value) ? "Nothing has happened yet." : "Nothing fits the filter."}</p>
      )}
      {!following.value && (
        <button type="button" class="to-end" onClick={() => (following.value = true)}>
          ↓ Newest
        </button>
      )}
      <Composer />
    </section>
  );
}

function Filters() {
  const desk = useLive();
  const filter = desk.filter.value;
  const timer = useRef<number | undefined>(undefined);
  const set = (change: Partial<typeof filter>): void => {
    desk.filter.value = { ...desk.filter.value, ...change };
  };
  const typed = (text: string): void => {
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => set({ text }), TYPING_MS);
  };
  return (
    <div class="filters" role="search" aria-label="the stream">
      <input type="search" id="filter-text" placeholder="Find (/)" aria-label="text to find" onInput={(event) => typed(event.currentTarget.value)} />
      <select aria-label="participant" value={filter.participant} onChange={(event) => set({ participant: event.currentTarget.value })}>
        <option value="">anyone</option>
        {desk.space.participants.listed.slice(0, 500).map(({ id }) => (
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
      <input class="context" aria-label="context" placeholder="context" value={filter.context} onChange={(event) => set({ context: event.currentTarget.value.trim() })} />
      {!isEmpty(filter) && (
        <button
          type="button"
          class="small"
          onClick={() => {
            desk.filter.value = NO_FILTER;
            const box = document.getElementById("filter-text");
            if (box instanceof HTMLInputElement) box.value = "";
          }}
        >
          {filter.thread === null ? "All" : `Thread of ${count(filter.thread.size)}`} ✕
        </button>
      )}
      <button type="button" class="small" onClick={() => (desk.dialog.value = { is: "history" })}>
        History…
      </button>
    </div>
  );
}
