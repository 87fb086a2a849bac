/** How long a rule is active, and for how many calls. */

import type { Signal } from "@preact/signals";

import type { JsonObject } from "../../json";

/** `uses` as it was typed; empty: any number. */
export interface Terms {
  end: End;
  uses: string;
}

const ENDS = [
  ["hour", "for 1 hour"],
  ["today", "until the end of today"],
  ["week", "for 7 days"],
  ["revoked", "until someone revokes it"],
] as const;
type End = (typeof ENDS)[number][0];

export const DEFAULT_TERMS: Terms = { end: "week", uses: "" };
const USES_MAX = 1_000_000;

/** The fields of `autopilot/ratify`; null if the number of calls is not a positive whole number. */
export function termsPayload({ end, uses }: Terms, now: Date): JsonObject | null {
  const number = uses.trim() === "" ? null : Number(uses);
  if (number !== null && !(Number.isInteger(number) && number >= 1 && number <= USES_MAX)) return null;
  const until = endOf(end, now);
  return { ...(until === null ? {} : { until: until.toISOString() }), ...(number === null ? {} : { uses: number }) };
}

/** Today ends where the reader is. */
function endOf(end: End, now: Date): Date | null {
  switch (end) {
    case "hour":
      return new Date(now.getTime() + 3_600_000);
    case "today":
      return new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1);
    case "week":
      return new Date(now.getTime() + 7 * 86_400_000);
    case "revoked":
      return null;
  }
}

export function TermsFields({ terms }: { terms: Signal<Terms> }) {
  const isWrong = termsPayload(terms.value, new Date()) === null;
  return (
    <div class="terms">
      <label>
        Don't ask
        <select value={terms.value.end} onChange={(event) => (terms.value = { ...terms.value, end: event.currentTarget.value as End })}>
          {ENDS.map(([end, words]) => (
            <option key={end} value={end}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <label>
        At most this many calls
        <input
          inputMode="numeric"
          size={8}
          placeholder="no limit"
          value={terms.value.uses}
          aria-invalid={isWrong}
          onInput={(event) => (terms.value = { ...terms.value, uses: event.currentTarget.value })}
        />
      </label>
      {isWrong && (
        <p class="fault" role="alert">
          Enter a whole number from 1 to 1,000,000, or leave it empty.
        </p>
      )}
    </div>
  );
}

/** What a bound says, and what it does not. */
export function BoundNote() {
  return (
    <p class="dim bound-note">
      A bound speaks of proposals as they come: it says how often you would reject what the rule approves. It does not cover a proposer who
      chooses calls to deceive the rule. Against that, a rule covers only what it names, some calls are checked by a person all the same, and a
      single objection stops the rule.
    </p>
  );
}
