/** Inviting and removing participants. */

import { useSignal } from "@preact/signals";

import type { JsonObject } from "../../json";
import { inWords } from "../../space/words";
import { visible } from "../../text";
import { usePageState } from "../app/page_state";
import { DialogBox } from "../app/dialog";
import { fromShort } from "./grant_dialogs";
import { Invited } from "./invitation_result";

const ID = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$/;
const ROLES: [words: string, capabilities: string[]][] = [
  ["Agent: chats, reasons and proposes", ["chat", "chat/*", "reasoning/*", "participant/status", "mcp/proposal", "mcp/withdraw", "mcp/request:tools/list"]],
  ["Observer: chats and watches", ["chat", "chat/*"]],
  ["Reviewer: approves and rejects", ["chat", "chat/*", "mcp/request", "mcp/reject", "mcp/proposal", "mcp/withdraw"]],
  ["Same capabilities as you", ["*"]],
];

export function InviteDialog() {
  const page = usePageState();
  const id = useSignal("");
  const role = useSignal(0);
  const email = useSignal("");
  const sent = useSignal<string | null>(null);
  const answer = page.invited.value;
  const ack = sent.value !== null && answer?.correlation_id?.includes(sent.value) === true ? answer.payload : null;
  const capabilities = (ROLES[role.value]?.[1] ?? []).map((short) => fromShort(short)).filter((one) => one !== null);
  const known = page.space.participants.get(id.value.trim()) !== undefined;
  const mayRemove = page.may({ kind: "space/kick", payload: { participant_id: id.value.trim() } });
  const good = ID.test(id.value.trim()) && !known;
  const done = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!good) return;
    const payload: JsonObject = { participant_id: id.value.trim(), initial_capabilities: capabilities };
    if (email.value.trim() !== "") payload.email = email.value.trim();
    const echo = await page.send({ kind: "space/invite", payload });
    sent.value = echo?.id ?? null;
  };
  if (ack != null) return <Invited ack={ack} />;
  return (
    <DialogBox title="Invite a participant">
      <form class="form" onSubmit={(event) => void done(event)}>
        <label>
          Participant id
          <input
            data-first
            required
            value={id.value}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => (id.value = event.currentTarget.value)}
            aria-invalid={id.value !== "" && !good}
          />
        </label>
        {id.value !== "" && !good && (
          <p class="fault">
            {known ? taken(id.value.trim(), mayRemove) : "Use letters and digits, and . _ @ - after the first character."}
          </p>
        )}
        <fieldset class="reasons single">
          <legend>Role</legend>
          {ROLES.map(([words], at) => (
            <label key={words} class="choice">
              <input type="radio" name="role" checked={role.value === at} onChange={() => (role.value = at)} />
              {words}
            </label>
          ))}
        </fieldset>
        <label>
          E-mail address (optional; the gateway sends the invitation)
          <input type="email" value={email.value} onInput={(event) => (email.value = event.currentTarget.value)} />
        </label>
        <p class="means" role="status">
          <strong>What it will mean:</strong> {visible(id.value.trim() || "they", 60)} can{" "}
          {inWords(capabilities).map((said) => said.words.toLowerCase()).join("; ")}. Everyone sees that you invited them. Only you see
          the sign-in link, once.
        </p>
        <div class="actions">
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          <button type="submit" class="approve" disabled={!good}>
            Invite
          </button>
        </div>
      </form>
    </DialogBox>
  );
}

/** What to do if the id is taken: usually a link was lost. */
function taken(id: string, mayRemove: boolean): string {
  const remove = mayRemove ? "choose “Remove…” for that participant" : "ask someone who may remove participants to remove it";
  return `${visible(id, 60)} is already in the space. For a new link, ${remove} and invite again. To give it more capabilities, choose “Grant…”.`;
}

export function KickDialog({ participant }: { participant: string }) {
  const page = usePageState();
  const reason = useSignal("");
  const done = (event: Event): void => {
    event.preventDefault();
    page.dialog.value = null;
    const said = reason.value.trim();
    void page.send({ kind: "space/kick", payload: { participant_id: participant, ...(said === "" ? {} : { reason: said }) } });
  };
  return (
    <DialogBox title={`Remove ${visible(participant, 60)}`}>
      <form class="form" onSubmit={done}>
        <p class="means">
          <strong>What it will mean:</strong> its connections are closed and its token stops working. It can return only
          with a new invitation. Everyone sees that you removed it.
        </p>
        <label>
          Reason (optional)
          <input data-first value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
        <div class="actions">
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          <button type="submit" class="reject">
            Remove
          </button>
        </div>
      </form>
    </DialogBox>
  );
}
