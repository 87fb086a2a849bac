/** Keyboard shortcuts, the raw JSON of an envelope, and opening the history. */

import { useSignal } from "@preact/signals";

import type { Envelope } from "../../envelope";
import { copyText } from "../values/clipboard";
import { usePageState } from "./page_state";
import { DialogBox } from "./dialog";
import { KEYS, KEYS_WITHIN } from "./keys";
import { LongText } from "../values/text_view";
import { visible } from "../../text";

export function KeysDialog() {
  return (
    <DialogBox title="Keyboard shortcuts" wide>
      <dl class="keys" tabIndex={0}>
        {[...KEYS, ...KEYS_WITHIN].map((key) => (
          <div key={key.shown}>
            <dt>
              {key.shown.split("  ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{key.words}</dd>
          </div>
        ))}
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
        <button type="button" data-first onClick={() => void copyText(text).then((isCopied) => (copied.value = isCopied))}>
          {copied.value ? "Copied" : "Copy"}
        </button>
      </div>
    </DialogBox>
  );
}

export function HistoryDialog() {
  const page = usePageState();
  const moment = useSignal(localTime(new Date(page.now.peek() - 3_600_000)));
  const id = useSignal("");
  const done = (event: Event): void => {
    event.preventDefault();
    const [wanted, since] = [id.value.trim(), new Date(moment.value)];
    if (wanted === "" && Number.isNaN(since.getTime())) return;
    page.dialog.value = null;
    void (wanted === "" ? page.history.toMoment(since) : page.history.toEnvelope(wanted));
  };
  return (
    <DialogBox title="History">
      <form class="form" onSubmit={done}>
        <label>
          From a date and time
          <input
            data-first
            type="datetime-local"
            step="1"
            value={moment.value}
            onInput={(event) => (moment.value = event.currentTarget.value)}
          />
        </label>
        <label>
          Or around the envelope with this id
          <input
            value={id.value}
            spellcheck={false}
            autocomplete="off"
            class="mono"
            onInput={(event) => (id.value = event.currentTarget.value)}
          />
        </label>
        <p class="dim">
          The history replaces the live stream. Scroll up or down to load more; “Back to live” (<kbd>b</kbd>) returns.
        </p>
        <div class="actions">
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          <button type="submit" class="approve">
            Show
          </button>
        </div>
      </form>
    </DialogBox>
  );
}

/** As the field for a moment wants it: without a zone, in that of who looks. */
function localTime(moment: Date): string {
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
