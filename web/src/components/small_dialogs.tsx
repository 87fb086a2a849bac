/** The keys, the raw JSON of an envelope, and the way into the history. */

import { useSignal } from "@preact/signals";

import type { Envelope } from "../envelope";
import { useDesk } from "./desk";
import { DialogBox } from "./dialog";
import { KEYS } from "./keys";
import { LongText } from "./text_view";
import { visible } from "../text";

export function KeysDialog() {
  return (
    <DialogBox title="Keys">
      <dl class="keys">
        {KEYS.map((key) => (
          <div key={key.shown}>
            <dt>
              {key.shown.split("  ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{key.words}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>close, or leave a field</dd>
        </div>
      </dl>
    </DialogBox>
  );
}

export function RawDialog({ envelope }: { envelope: Envelope }) {
  const text = JSON.stringify(envelope, null, 2);
  const copied = useSignal(false);
  return (
    <DialogBox title={`${visible(envelope.kind, 60)} from ${visible(envelope.from, 60)}`} wide>
      <LongText text={text} first={20_000} class="raw" />
      <div class="actions">
        <button type="button" data-first onClick={() => void navigator.clipboard?.writeText(text).then(() => (copied.value = true))}>
          {copied.value ? "Copied" : "Copy"}
        </button>
      </div>
    </DialogBox>
  );
}

export function HistoryDialog() {
  const desk = useDesk();
  const hourAgo = new Date(desk.now.peek() - 3_600_000);
  const local = new Date(hourAgo.getTime() - hourAgo.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  const moment = useSignal(local);
  const done = (event: Event): void => {
    event.preventDefault();
    const since = new Date(moment.value);
    if (Number.isNaN(since.getTime())) return;
    desk.dialog.value = null;
    void desk.lookBack(since);
  };
  return (
    <DialogBox title="Look back">
      <form class="form" onSubmit={done}>
        <label>
          What happened from
          <input data-first type="datetime-local" value={moment.value} onInput={(event) => (moment.value = event.currentTarget.value)} />
        </label>
        <p class="dim">A thousand envelopes from then on, apart from what happens now. Scrolling up in the stream brings older ones, too.</p>
        <div class="actions">
          <button type="button" onClick={() => (desk.dialog.value = null)}>
            Back
          </button>
          <button type="submit" class="approve">
            Show
          </button>
        </div>
      </form>
    </DialogBox>
  );
}
