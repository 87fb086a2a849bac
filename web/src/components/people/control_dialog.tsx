/** The controls of §3.9, each with its consequences before it is sent. */

import { useSignal } from "@preact/signals";

import type { JsonObject } from "../../json";
import { visible } from "../../text";
import { usePageState } from "../app/page_state";
import { DialogBox } from "../app/dialog";

interface Control {
  title: string;
  means: string;
  does: string;
}

const CONTROLS: Record<string, Control> = {
  "participant/pause": {
    title: "Pause",
    means: "The gateway refuses everything it sends, except acknowledgements, cancellations and status, until someone resumes it or the time is up.",
    does: "Pause",
  },
  "participant/forget": {
    title: "Forget",
    means: "Asks it to drop part of its context. It cannot recover what it drops.",
    does: "Forget",
  },
  "participant/compact": {
    title: "Compact",
    means: "Asks it to free space in its context by summarizing it.",
    does: "Compact",
  },
  "participant/clear": {
    title: "Clear",
    means: "Asks it to clear its context. It will know nothing of the conversation so far.",
    does: "Clear",
  },
  "participant/restart": {
    title: "Restart",
    means: "Asks it to restart with its configuration. Work in progress is lost; grants remain.",
    does: "Restart",
  },
  "participant/shutdown": {
    title: "Shut down",
    means: "Asks it to stop. The gateway refuses what it sends until it joins again.",
    does: "Shut down",
  },
};
const TIMES: [words: string, seconds: number | null][] = [
  ["until someone resumes it", null],
  ["1 minute", 60],
  ["10 minutes", 600],
  ["1 hour", 3600],
];

export function ControlDialog({ participant, kind }: { participant: string; kind: string }) {
  const page = usePageState();
  const reason = useSignal("");
  const seconds = useSignal<number | null>(null);
  const direction = useSignal("oldest");
  const entries = useSignal("");
  const control = CONTROLS[kind];
  if (control === undefined) return null;
  const done = (event: Event): void => {
    event.preventDefault();
    const payload: JsonObject = {};
    if (reason.value.trim() !== "" && (kind === "participant/pause" || kind === "participant/compact")) payload.reason = reason.value.trim();
    if (kind === "participant/pause" && seconds.value !== null) payload.timeout_seconds = seconds.value;
    if (kind === "participant/forget") {
      payload.direction = direction.value;
      if (/^\d+$/.test(entries.value.trim())) payload.entries = Number(entries.value);
    }
    page.dialog.value = null;
    void page.send({ kind, to: [participant], payload });
  };
  return (
    <DialogBox title={`${control.title} ${kind === "participant/forget" ? "messages of " : kind === "participant/clear" || kind === "participant/compact" ? "the context of " : ""}${visible(participant, 60)}`}>
      <form class="form" onSubmit={done}>
        <p>{control.means}</p>
        {kind === "participant/pause" && (
          <label>
            For how long
            <select onChange={(event) => (seconds.value = TIMES[Number(event.currentTarget.value)]?.[1] ?? null)}>
              {TIMES.map(([words], at) => (
                <option key={words} value={at}>
                  {words}
                </option>
              ))}
            </select>
          </label>
        )}
        {kind === "participant/forget" && (
          <>
            <label>
              Which messages
              <select value={direction.value} onChange={(event) => (direction.value = event.currentTarget.value)}>
                <option value="oldest">the oldest</option>
                <option value="newest">the newest</option>
              </select>
            </label>
            <label>
              How many (optional; it decides if empty)
              <input data-first inputMode="numeric" value={entries.value} onInput={(event) => (entries.value = event.currentTarget.value)} />
            </label>
          </>
        )}
        {(kind === "participant/pause" || kind === "participant/compact") && (
          <label>
            Reason (optional)
            <input data-first value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
          </label>
        )}
        <div class="actions">
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          <button type="submit" class={kind === "participant/shutdown" || kind === "participant/clear" ? "reject" : "approve"}>
            {control.does}
          </button>
        </div>
      </form>
    </DialogBox>
  );
}
