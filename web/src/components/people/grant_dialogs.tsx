/** Granting and revoking capabilities: suggested from proposals and refusals, and explained before they are sent. */

import { useSignal } from "@preact/signals";

import { type JsonObject, isObject, parseJson } from "../../json";
import { mayDo } from "../../space/capability_match";
import { textIn } from "../../space/fields";
import { toolOf } from "../../space/proposals";
import type { Space } from "../../space/space";
import { inWords, sayOne } from "../../space/words";
import { counted, visible } from "../../text";
import { usePageState } from "../app/page_state";
import { DialogBox } from "../app/dialog";

const ENDS: [words: string, seconds: number | null][] = [
  ["15 minutes", 900],
  ["1 hour", 3_600],
  ["1 day", 86_400],
  ["never", null],
];

interface Suggestion {
  key: string;
  why: string;
  capability: JsonObject;
}

/** What it proposed and was refused, newest first, each once. */
function suggestions(space: Space, participant: string): Suggestion[] {
  const found = new Map<string, Suggestion>();
  for (const proposal of [...space.proposals.all.values()].reverse()) {
    if (proposal.proposer !== participant) continue;
    const tool = toolOf(proposal);
    const payload: JsonObject = tool === null ? { method: proposal.method } : { method: proposal.method, params: { name: tool } };
    const capability: JsonObject = { kind: "mcp/request", ...(proposal.to.length === 1 ? { to: proposal.to[0] ?? "" } : {}), payload };
    const key = JSON.stringify(capability);
    if (!found.has(key)) found.set(key, { key, why: "it proposed this", capability });
  }
  for (const refusal of space.participants.get(participant)?.refusals.toReversed() ?? []) {
    const capability = fromShort(refusal.lacked ?? refusal.kind ?? "");
    if (capability !== null) found.set(JSON.stringify(capability), { key: JSON.stringify(capability), why: "it was refused this", capability });
  }
  return [...found.values()].slice(0, 12);
}

/** `kind:method:name`, as people write it; null where it is nothing of the sort. */
export function fromShort(text: string): JsonObject | null {
  const match = /^([^:\s{]+)(?::([^:\s]+))?(?::(\S+))?$/.exec(text.trim());
  if (match === null) return null;
  const [, kind = "", method, name] = match;
  if (method === undefined) return { kind };
  const field = method.startsWith("resources/") ? "uri" : method === "completion/complete" ? "ref" : "name";
  return { kind, payload: { method, ...(name === undefined ? {} : { params: { [field]: name } }) } };
}

/** Wider ones of the same kind: any tool of this beginning, any tool of this participant. */
function widened(capability: JsonObject): [words: string, capability: JsonObject][] {
  const payload = isObject(capability.payload) ? capability.payload : {};
  const params = isObject(payload.params) ? payload.params : {};
  const name = textIn(params.name);
  if (name === null) return [];
  const stem = /^([A-Za-z0-9]+[_-])./.exec(name)?.[1];
  const wide: [string, JsonObject][] = [];
  if (stem !== undefined) wide.push([`${stem}*`, { ...capability, payload: { ...payload, params: { name: `${stem}*` } } }]);
  wide.push(["any tool", { ...capability, payload: { method: payload.method ?? "tools/call" } }]);
  return wide;
}

function read(text: string): JsonObject | null {
  if (!text.trim().startsWith("{")) return fromShort(text);
  try {
    const value = parseJson(text);
    return isObject(value) && value.kind !== undefined ? value : null;
  } catch {
    return null;
  }
}

export function GrantDialog({ participant }: { participant: string }) {
  const page = usePageState();
  const offered = suggestions(page.space, participant);
  const chosen = useSignal<JsonObject | null>(offered[0]?.capability ?? null);
  const typed = useSignal("");
  const ttl = useSignal<number | null>(3_600);
  const reason = useSignal("");
  const capability = typed.value.trim() === "" ? chosen.value : read(typed.value);
  const done = (event: Event): void => {
    event.preventDefault();
    if (capability === null) return;
    page.dialog.value = null;
    const payload: JsonObject = { recipient: participant, capabilities: [capability] };
    if (ttl.value !== null) payload.ttl_seconds = ttl.value;
    if (reason.value.trim() !== "") payload.reason = reason.value.trim();
    void page.send({ kind: "capability/grant", to: [participant], payload });
  };
  return (
    <DialogBox title={`Grant a capability to ${visible(participant, 60)}`}>
      <form class="form" onSubmit={done}>
        {offered.length > 0 && (
          <fieldset class="reasons single">
            <legend>Suggestions</legend>
            {offered.map((one, at) => (
              <label key={one.key} class="choice">
                <input
                  type="radio"
                  name="grant"
                  data-first={at === 0 ? true : undefined}
                  checked={chosen.value === one.capability}
                  onChange={() => ((chosen.value = one.capability), (typed.value = ""))}
                />
                <span>
                  {visible(sayOne(one.capability).words, 100)}{" "}
                  <small class="dim">
                    {[...sayOne(one.capability).limits, one.why].map((words) => visible(words, 80)).join(", ")}
                  </small>
                </span>
              </label>
            ))}
          </fieldset>
        )}
        {chosen.value !== null && typed.value === "" && (
          <p class="widen">
            Wider:{" "}
            {widened(chosen.value).map(([words, wide]) => (
              <button key={words} type="button" class="small" onClick={() => (chosen.value = wide)}>
                {visible(words, 60)}
              </button>
            ))}
          </p>
        )}
        <label>
          Or enter a capability
          <input
            class="mono"
            value={typed.value}
            placeholder="mcp/request:tools/call:read_*"
            spellcheck={false}
            onInput={(event) => (typed.value = event.currentTarget.value)}
          />
        </label>
        <label>
          Expires after
          <select
            value={String(ENDS.findIndex(([, seconds]) => seconds === ttl.value))}
            onChange={(event) => (ttl.value = ENDS[Number(event.currentTarget.value)]?.[1] ?? null)}
          >
            {ENDS.map(([words], at) => (
              <option key={words} value={at}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label>
          Reason (optional)
          <input value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
        <GrantMeans participant={participant} capability={capability} seconds={ttl.value} />
        <div class="actions">
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          <button type="submit" class="approve" disabled={capability === null}>
            Grant
          </button>
        </div>
      </form>
    </DialogBox>
  );
}

function GrantMeans({ participant, capability, seconds }: { participant: string; capability: JsonObject | null; seconds: number | null }) {
  const { space } = usePageState();
  if (capability === null) return <p class="warning">Choose a suggestion or enter a capability as kind:method:name or JSON.</p>;
  const said = sayOne(capability);
  const theirs = [...space.proposals.all.values()].filter(({ proposer }) => proposer === participant);
  const spared = theirs.filter(({ to, method, params }) =>
    mayDo([capability], { kind: "mcp/request", to, payload: { jsonrpc: "2.0", id: 0, method, params } }),
  );
  const until = seconds === null ? "until someone revokes it" : `for ${ENDS.find(([, one]) => one === seconds)?.[0] ?? "a while"}`;
  return (
    <p class="means" role="status">
      <strong>What it will mean:</strong> {visible(participant, 60)} can {visible(said.words.toLowerCase(), 160)}
      {said.limits.length > 0 && ` (${visible(said.limits.join(", "), 160)})`} without approval, {until}.
      {spared.length > 0 && ` ${counted(spared.length, "recent proposal")} would not have needed your decision.`}
    </p>
  );
}

export function RevokeDialog({ participant, grant }: { participant: string; grant: string | null }) {
  const page = usePageState();
  const one = page.space.participants.get(participant);
  const held = one?.capabilities ?? [];
  /** Nothing is chosen for anybody: Enter must not take away what happens to come first. */
  const chosen = useSignal<JsonObject | null>(null);
  const reason = useSignal("");
  const given = one?.grants.find((known) => known.id === grant);
  const capability = chosen.value;
  const done = (event: Event): void => {
    event.preventDefault();
    page.dialog.value = null;
    const payload: JsonObject = { recipient: participant, ...(reason.value.trim() === "" ? {} : { reason: reason.value.trim() }) };
    if (grant !== null) payload.grant_id = grant;
    else if (capability !== null) payload.capabilities = [capability];
    void page.send({ kind: "capability/revoke", to: [participant], payload });
  };
  return (
    <DialogBox title={`Revoke a capability of ${visible(participant, 60)}`}>
      <form class="form" onSubmit={done}>
        {grant === null && (
          <fieldset class="reasons single">
            <legend>Capability</legend>
            {held.slice(0, 60).map((capabilityHeld, at) => (
              <label key={at} class="choice">
                <input
                  type="radio"
                  name="revoke"
                  data-first={at === 0 ? true : undefined}
                  checked={capability === capabilityHeld}
                  onChange={() => (chosen.value = capabilityHeld)}
                />
                <span>
                  {visible(sayOne(capabilityHeld).words, 120)}{" "}
                  <small class="dim">{visible(sayOne(capabilityHeld).limits.join(", "), 120)}</small>
                </span>
              </label>
            ))}
          </fieldset>
        )}
        <label>
          Reason (optional)
          <input value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
        <p class="means" role="status">
          <strong>What it will mean:</strong> starting with its next envelope, {visible(participant, 60)} can no longer{" "}
          {given === undefined
            ? visible((capability === null ? "…" : sayOne(capability).words).toLowerCase(), 160)
            : visible(inWords(given.capabilities).map((said) => said.words.toLowerCase()).join("; "), 240)}
          , unless another grant allows it. Grants that it passed on from this one end as well.
        </p>
        <div class="actions">
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          <button type="submit" class="reject" disabled={grant === null && capability === null}>
            Revoke
          </button>
        </div>
      </form>
    </DialogBox>
  );
}
