/** The participants: presence, capabilities, status and controls. */

import { useSignal } from "@preact/signals";

import type { Participant } from "../../space/participants";
import { inWords } from "../../space/words";
import { count, counted, lasting, visible } from "../../text";
import { useLive } from "../app/page_state";
import { Ago, Who } from "../values/text_view";

const SHOWN_MAX = 200;

export function People() {
  const page = useLive();
  const { participants } = page.space;
  const listed = participants.listed;
  const here = listed.filter((one) => one.here).length;
  return (
    <section class="people" aria-labelledby="people-title">
      <header class="pane-head">
        <h2 id="people-title">
          Participants <span class="count">{count(here)} online</span>
        </h2>
        {page.may({ kind: "space/invite", payload: {} }) && (
          <button type="button" class="small" onClick={() => (page.dialog.value = { is: "invite" })}>
            Invite…
          </button>
        )}
      </header>
      <ul class="person-list">
        {listed.slice(0, SHOWN_MAX).map((one) => (
          <Person key={one.id} one={one} />
        ))}
        {listed.length > SHOWN_MAX && <li class="dim pad">and {count(listed.length - SHOWN_MAX)} more</li>}
      </ul>
    </section>
  );
}

function Person({ one }: { one: Participant }) {
  const page = useLive();
  const isOpen = useSignal(false);
  const now = page.now.value;
  const paused = page.space.participants.isPaused(one, now);
  const may = inWords(one.capabilities);
  return (
    <li class={one.here ? "person here" : "person"}>
      <details open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
        <summary>
          <span class={one.here ? "presence on" : "presence"} title={one.here ? "online" : "offline"}>
            <span class="aloud">{one.here ? "online" : "offline"}</span>
          </span>
          <Who id={one.id} />
          <span class="doing">{doing(one, paused, now)}</span>
        </summary>
        {isOpen.value && (
          <div class="person-inside">
            <h3>Capabilities</h3>
            {may.length === 0 && <p class="dim">none known</p>}
            <ul class="rights">
              {may.slice(0, 60).map((said) => (
                <li key={said.words + said.limits.join()} class={said.weight}>
                  {visible(said.words, 160)}
                  {said.limits.map((limit) => (
                    <small key={limit} class="dim">
                      , {visible(limit, 160)}
                    </small>
                  ))}
                </li>
              ))}
            </ul>
            <Grants one={one} />
            <Offers one={one} />
            {one.lastSeenAt !== null && (
              <p class="dim">
                last seen <Ago at={one.lastSeenAt} />, {counted(one.sent, "envelope")} shown here
              </p>
            )}
            <Controls one={one} paused={paused} />
          </div>
        )}
      </details>
      <Tokens one={one} />
    </li>
  );
}

function doing(one: Participant, paused: boolean, now: number): string {
  if (one.shutDown) return "shut down";
  if (paused) {
    const until = one.pause?.until ?? null;
    return until === null ? "paused" : `paused for ${lasting(until - now)} more`;
  }
  if (!one.here) return "offline";
  return visible(one.status.status ?? "", 40);
}

/** The tokens in its context, as a share of the maximum. */
function Tokens({ one }: { one: Participant }) {
  useLive();
  const { tokens, maxTokens: most } = one.status;
  if (tokens === null) return null;
  const share = most === null || most <= 0 ? null : Math.min(1, Math.max(0, tokens / most));
  return (
    <div class="tokens">
      {share !== null && <meter min={0} max={1} high={0.8} optimum={0} value={share} aria-label={`tokens of ${visible(one.id, 60)}`} />}
      <small class="dim">
        {most === null ? counted(tokens, "token") : `${count(tokens)} of ${counted(most, "token")}`}
      </small>
    </div>
  );
}

function Grants({ one }: { one: Participant }) {
  const page = useLive();
  const now = page.now.value;
  const grants = one.grants.filter((grant) => grant.expiresAt === null || grant.expiresAt > now);
  if (grants.length === 0) return null;
  const may = page.may({ kind: "capability/revoke", payload: { recipient: one.id } });
  return (
    <>
      <h3>Grants</h3>
      <ul class="grants">
        {grants.slice(-20).map((grant) => (
          <li key={grant.id}>
            {inWords(grant.capabilities).map((said) => visible(said.words, 100)).join("; ")}{" "}
            <small class="dim">
              by {visible(grant.by, 60)}, <Ago at={grant.at} />
              {grant.expiresAt !== null && `, expires in ${lasting(grant.expiresAt - now)}`}
            </small>
            {may && (
              <button
                type="button"
                class="small"
                onClick={() => (page.dialog.value = { is: "revoke", participant: one.id, grant: grant.id })}
              >
                Revoke grant…
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function Offers({ one }: { one: Participant }) {
  const tools = useLive().space.tools.of(one.id);
  if (tools.length === 0) return null;
  return (
    <>
      <h3>Tools</h3>
      <p class="offers">{tools.slice(0, 60).map((tool) => visible(tool.name, 60)).join(", ")}</p>
    </>
  );
}

const CONTROLS: [kind: string, words: string][] = [
  ["participant/pause", "Pause…"],
  ["participant/request-status", "Request status"],
  ["participant/forget", "Forget…"],
  ["participant/compact", "Compact…"],
  ["participant/clear", "Clear…"],
  ["participant/restart", "Restart…"],
  ["participant/shutdown", "Shut down…"],
];

function Controls({ one, paused }: { one: Participant; paused: boolean }) {
  const page = useLive();
  if (one.id === page.space.me) return null;
  const to = [one.id];
  const controls = CONTROLS.filter(([kind]) => page.may({ kind, to, payload: {} }));
  return (
    <div class="controls">
      {paused && page.may({ kind: "participant/resume", to, payload: {} }) && (
        <button
          type="button"
          class="small"
          onClick={() => void page.send({ kind: "participant/resume", to, ...(one.pause === null ? {} : { correlation_id: [one.pause.id] }), payload: {} })}
        >
          Resume
        </button>
      )}
      {controls.map(([kind, words]) => (
        <button
          key={kind}
          type="button"
          class="small"
          disabled={!one.here && kind !== "participant/pause"}
          onClick={() => {
            if (kind === "participant/request-status") void page.send({ kind, to, payload: {} });
            else page.dialog.value = { is: "control", participant: one.id, kind };
          }}
        >
          {words}
        </button>
      ))}
      {page.may({ kind: "capability/grant", payload: { recipient: one.id } }) && (
        <button type="button" class="small" onClick={() => (page.dialog.value = { is: "grant", participant: one.id })}>
          Grant…
        </button>
      )}
      {page.may({ kind: "capability/revoke", payload: { recipient: one.id } }) && (
        <button type="button" class="small" onClick={() => (page.dialog.value = { is: "revoke", participant: one.id, grant: null })}>
          Revoke…
        </button>
      )}
      {page.may({ kind: "space/kick", payload: { participant_id: one.id } }) && (
        <button type="button" class="small reject" onClick={() => (page.dialog.value = { is: "kick", participant: one.id })}>
          Remove…
        </button>
      )}
    </div>
  );
}
