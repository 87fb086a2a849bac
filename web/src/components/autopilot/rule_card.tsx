/** One rule: what it covers, how it stands, its evidence and bound, and the buttons that accept, pause or revoke it. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { AutopilotRule } from "../../space/autopilot";
import { counted, visible } from "../../text";
import { useLive } from "../app/page_state";
import { DialogBox } from "../app/dialog";
import { Ago, LongText, Who, wholeTime } from "../values/text_view";
import { RulePlot } from "./plot";
import { Sentence } from "./sentence";
import { BoundNote, DEFAULT_TERMS, TermsFields, type Terms, termsPayload } from "./terms";

const STATES: Record<string, string> = {
  active: "active",
  suggested: "suggested",
  demoted: "demoted: it made a mistake and has to earn its evidence again",
  asleep: "paused",
  expired: "expired",
  revoked: "revoked",
};

export function RuleCard({ rule }: { rule: AutopilotRule }) {
  const page = useLive();
  const card = useRef<HTMLElement>(null);
  const isOpen = useSignal(false);
  const isMeant = page.rule.value === rule.id;
  useEffect(() => {
    if (!isMeant) return;
    isOpen.value = true;
    card.current?.scrollIntoView({ block: "nearest" });
    card.current?.querySelector<HTMLElement>("summary")?.focus();
    page.rule.value = null;
  }, [isMeant]);
  const inForce = rule.state === "active";
  return (
    <article ref={card} class={`rule ${rule.state}`} data-rule={visible(rule.id, 20)} aria-label={`rule ${visible(rule.id, 20)}`}>
      <p class="rule-head">
        <span class={`chip rule-state ${rule.state}`} title={STATES[rule.state] ?? rule.state}>
          {(STATES[rule.state] ?? visible(rule.state, 20)).split(":")[0]}
        </span>{" "}
        <span class="dim">
          <Author rule={rule} />
          <Ending rule={rule} />
        </span>
      </p>
      <p class="rule-sentence">
        <Sentence text={rule.sentence} />
      </p>
      <p class="rule-bound">{visible(rule.bound, 300)}.</p>
      {rule.refused !== null && (
        <p class="warning" role="note">
          Not activated: {visible(rule.refused, 200)}.
        </p>
      )}
      <details open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
        <summary>
          {rule.uses === 0 ? "Evidence and history" : `Used ${rule.uses === 1 ? "once" : `${rule.uses} times`}`}
          {rule.lastUsed !== null && (
            <>
              , last <Ago at={rule.lastUsed} />
            </>
          )}
        </summary>
        {isOpen.value && <RuleDetails rule={rule} />}
      </details>
      <div class="rule-buttons">
        {!inForce && page.may({ kind: "autopilot/ratify", payload: { rule: rule.id } }) && (
          <button type="button" class="approve small" onClick={() => (page.dialog.value = { is: "accept", rule: rule.id })}>
            {rule.state === "suggested" ? "Accept…" : "Activate again…"}
          </button>
        )}
        {inForce && <Order rule={rule} words="Pause" pause />}
        {rule.state !== "revoked" && <Order rule={rule} words="Revoke" />}
      </div>
    </article>
  );
}

function Order({ rule, words, pause }: { rule: AutopilotRule; words: string; pause?: boolean }) {
  const page = useLive();
  const order = { kind: "autopilot/revoke", payload: { rule: rule.id, ...(pause === true ? { pause } : {}) } };
  if (!page.may(order)) return null;
  const title = pause === true ? "Ask again until someone reactivates the rule" : "Ask again about such calls";
  return (
    <button type="button" class={pause === true ? "small" : "reject small"} title={title} onClick={() => void page.order(order.kind, order.payload)}>
      {words}
    </button>
  );
}

function Author({ rule: { author, ratifiedBy, id } }: { rule: AutopilotRule }) {
  return (
    <>
      {author === "ratified" && ratifiedBy !== null ? (
        <>
          accepted by <Who id={ratifiedBy} />
        </>
      ) : author === "written" ? (
        "written in space.yaml"
      ) : (
        "learned from decisions"
      )}
      {" · "}
      <code>{visible(id, 20)}</code>
    </>
  );
}

function Ending({ rule: { state, until, usesMax, uses } }: { rule: AutopilotRule }) {
  if (state !== "active") return null;
  const parts = [
    until === null ? null : `until ${wholeTime(until)}`,
    usesMax === null ? null : `${counted(Math.max(0, usesMax - uses), "call")} left`,
  ].filter((part) => part !== null);
  return <> · {parts.length === 0 ? "until revoked" : parts.join(", ")}</>;
}

function RuleDetails({ rule }: { rule: AutopilotRule }) {
  return (
    <div class="rule-details">
      <h4>Evidence</h4>
      <p>
        {counted(rule.decisions - rule.rejections, "approval")} and {counted(rule.rejections, "rejection")} since the rule was made.
      </p>
      <RulePlot days={rule.days} recent={rule.recent} />
      {rule.limits !== "" && <p class="dim">{visible(rule.limits, 400)}</p>}
      {rule.samples.length > 0 && (
        <>
          <h4>Sample calls</h4>
          <ul class="samples">
            {rule.samples.map((sample, at) => (
              <li key={at}>
                <LongText text={sample} first={300} class="mono" />
              </li>
            ))}
          </ul>
        </>
      )}
      <h4>History</h4>
      <ol class="rule-states">
        {rule.states.map(({ at, state }, place) => (
          <li key={place}>
            {(STATES[state] ?? visible(state, 20)).split(":")[0]}{" "}
            <small class="dim">
              <Ago at={at} />
            </small>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Activate a known rule. */
export function AcceptDialog({ id }: { id: string }) {
  const page = useLive();
  const rule = page.space.autopilot.rule(id);
  const terms = useSignal<Terms>(DEFAULT_TERMS);
  if (rule === undefined) return null;
  const payload = termsPayload(terms.value, new Date());
  const done = (event: Event): void => {
    event.preventDefault();
    if (payload === null) return;
    page.dialog.value = null;
    void page.order("autopilot/ratify", { rule: id, ...payload });
  };
  return (
    <DialogBox title="Let the autopilot approve such calls">
      <form class="form" onSubmit={done}>
        <p class="rule-sentence">
          <Sentence text={rule.sentence} />
        </p>
        <p>{visible(rule.bound, 300)}.</p>
        <TermsFields terms={terms} />
        <BoundNote />
        <div class="actions">
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          <button type="submit" class="approve" data-first disabled={payload === null}>
            Activate
          </button>
        </div>
      </form>
    </DialogBox>
  );
}
