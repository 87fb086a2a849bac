/** The controls of §3.9, each with what it will mean before it is sent. */

import { useSignal } from "@preact/signals";

import type { JsonObject } from "../json";
import { visible } from "../text";
import { useDesk } from "./desk";
import { DialogBox } from "./dialog";

interface Control {
  title: string;
  means: string;
  does: string;
}

const CONTROLS: Record<string, Control> = {
  "participant/pause": {
    title: "Pause",
    means: "The gateway will refuse all it sends, but for acknowledgements, cancellations and status, until you let it go on or the time is over.",
    does: "Pause it",
  },
  "participant/forget": {
    title: "Let it forget",
    means: "It is asked to drop part of what it keeps in mind. What it drops is not to be had back from it.",
    does: "Have it forget",
  },
  "participant/compact": {
    title: "Compact",
    means: "It is asked to make room in its memory, by summing up what it keeps in mind.",
    does: "Have it compact",
  },
  "participant/clear": {
    title: "Clear",
    means: "It is asked to forget everything that it keeps in mind: it will know nothing of what was said so far.",
    does: "Have it forget everything",
  },
  "participant/restart": {
    title: "Restart",
    means: "It is asked to start over as it was configured. What it was doing ends; what it was given stays.",
    does: "Restart it",
  },
  "participant/shutdown": {
    title: "Shut down",
    means: "It is asked to stop, and the gateway refuses what it sends until it joins again.",
    does: "Shut it down",
  },
};
const TIMES: [words: string, seconds: number | null][] = [
  ["until somebody lets it go on", null],
  ["1 minute", 60],
  ["10 minutes", 600],
  ["1 hour", 3600],
];

export function ControlDialog({ participant, kind }: { participant: string; kind: string }) {
  const desk = useDesk();
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
    desk.dialog.value = null;
    void desk.send({ kind, to: [participant], payload });
  };
  return (
    <DialogBox title={`${control.title}: ${visible(participant, 60)}`}>
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
              Which
              <select value={direction.value} onChange={(event) => (direction.value = event.currentTarget.value)}>
                <option value="oldest">the oldest messages</option>
                <option value="newest">the newest messages</option>
              </select>
            </label>
            <label>
              How many, if not for it to say
              <input data-first inputMode="numeric" value={entries.value} onInput={(event) => (entries.value = event.currentTarget.value)} />
            </label>
          </>
        )}
        {(kind === "participant/pause" || kind === "participant/compact") && (
          <label>
            Why, if you like
            <input data-first value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
          </label>
        )}
        <div class="actions">
          <button type="button" onClick={() => (desk.dialog.value = null)}>
            Back
          </button>
          <button type="submit" class={kind === "participant/shutdown" || kind === "participant/clear" ? "reject" : "approve"}>
            {control.does}
          </button>
        </div>
      </form>
    </DialogBox>
  );
}
