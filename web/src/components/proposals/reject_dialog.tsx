/** Rejecting: a reason of §3.3.3, and a message for the proposer. */

import { useSignal } from "@preact/signals";

import { counted } from "../../text";
import { usePageState } from "../app/page_state";
import { DialogBox } from "../app/dialog";

const REASONS: [code: string, words: string][] = [
  ["disagree", "I disagree"],
  ["unsafe", "Unsafe"],
  ["inappropriate", "Inappropriate here"],
  ["policy", "Against policy"],
  ["invalid", "Invalid request"],
  ["duplicate", "Duplicate"],
  ["no_longer_needed", "No longer needed"],
  ["resource_limit", "Too expensive"],
  ["busy", "Not now"],
  ["other", "Other"],
];

/** More of it is not shown anywhere. */
const MESSAGE_CHARS_MAX = 4_096;

export function RejectDialog({ proposals }: { proposals: string[] }) {
  const page = usePageState();
  const reason = useSignal("disagree");
  const message = useSignal("");
  const done = (event: Event): void => {
    event.preventDefault();
    page.dialog.value = null;
    page.decisions.decide(proposals, { is: "reject", reason: reason.value, message: message.value.trim() });
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
          <legend>Reason</legend>
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
          In your own words (optional)
          <textarea
            data-first
            rows={3}
            maxLength={MESSAGE_CHARS_MAX}
            value={message.value}
            onInput={(event) => (message.value = event.currentTarget.value)}
            placeholder="Sent to the proposer with the rejection. Shift+Enter starts a new line."
          />
        </label>
        <p class="dim">Others can still approve {proposals.length === 1 ? "it" : "them"} unless the proposer gives up.</p>
        <div class="actions">
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          <button type="submit" class="reject">
            Reject <kbd>Enter</kbd>
          </button>
        </div>
      </form>
    </DialogBox>
  );
}

const PROPOSER_LEFT = "proposer_left";
const CLEARED = "The proposer is no longer connected. Propose it again if it is still needed.";

/** Rejecting, all at once, proposals whose proposer has left. */
export function ClearDialog({ proposals }: { proposals: string[] }) {
  const page = usePageState();
  const done = (): void => {
    page.dialog.value = null;
    const { decisions, space } = page;
    const left = proposals.map((id) => space.proposals.get(id)).filter((found) => found !== undefined && space.hasLeft(found));
    decisions.decide(left.map((proposal) => proposal?.id ?? ""), { is: "reject", reason: PROPOSER_LEFT, message: CLEARED });
  };
  const many = counted(proposals.length, "proposal");
  return (
    <DialogBox title={`Reject ${many} whose proposer left?`}>
      <p>
        {proposals.length === 1 ? "The proposer is" : "Their proposers are"} no longer connected. Everyone will see the{" "}
        {proposals.length === 1 ? "rejection" : "rejections"}, and others can still approve {proposals.length === 1 ? "it" : "them"}.
      </p>
      <div class="actions">
        <button type="button" data-first onClick={() => (page.dialog.value = null)}>
          Cancel
        </button>
        <button type="button" class="reject" onClick={done}>
          Reject {many}
        </button>
      </div>
    </DialogBox>
  );
}
