/** Saying no: a reason of §3.3.3, and words for who proposed it. */

import { useSignal } from "@preact/signals";

import { useDesk } from "./desk";
import { DialogBox } from "./dialog";

const REASONS: [code: string, words: string][] = [
  ["disagree", "I do not agree"],
  ["unsafe", "It could do harm"],
  ["inappropriate", "Not fitting here"],
  ["policy", "Against the rules"],
  ["invalid", "It makes no sense as it is"],
  ["duplicate", "It is being done already"],
  ["no_longer_needed", "No longer needed"],
  ["resource_limit", "Too costly"],
  ["busy", "Not now"],
  ["other", "Something else"],
];

export function RejectDialog({ proposals }: { proposals: string[] }) {
  const desk = useDesk();
  const reason = useSignal("disagree");
  const words = useSignal("");
  const done = (event: Event): void => {
    event.preventDefault();
    desk.dialog.value = null;
    desk.decisions.decide(proposals, { is: "reject", reason: reason.value, words: words.value.trim() });
  };
  const title = proposals.length === 1 ? "Reject this proposal" : `Reject ${proposals.length} proposals`;
  return (
    <DialogBox title={title}>
      <form
        class="form"
        onSubmit={done}
        onKeyDown={(event) => {
          const isWriting = event.target instanceof HTMLTextAreaElement && !event.shiftKey && !event.isComposing;
          if (event.key === "Enter" && (isWriting || event.ctrlKey || event.metaKey)) done(event);
        }}
      >
        <fieldset class="reasons">
          <legend>Why</legend>
          {REASONS.map(([code, said]) => (
            <label key={code} class="choice">
              <input
                type="radio"
                name="reason"
                value={code}
                checked={reason.value === code}
                onChange={() => (reason.value = code)}
              />
              {said}
            </label>
          ))}
        </fieldset>
        <label>
          In your words, if you like
          <textarea
            data-first
            rows={3}
            value={words.value}
            onInput={(event) => (words.value = event.currentTarget.value)}
            placeholder="Sent as a chat to who proposed it; Shift+Enter begins a new line"
          />
        </label>
        <p class="dim">Others may still approve it, unless its proposer takes this for an answer.</p>
        <div class="actions">
          <button type="button" onClick={() => (desk.dialog.value = null)}>
            Back
          </button>
          <button type="submit" class="reject">
            Reject <kbd>Enter</kbd>
          </button>
        </div>
      </form>
    </DialogBox>
  );
}
