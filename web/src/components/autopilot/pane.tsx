/** The autopilot: its mode, what it did in the last days, and its rules. */

import { type AutopilotSummary, MODES, type Mode, lastDays } from "../../space/autopilot";
import { count, counted, lasting, visible } from "../../text";
import { useLive } from "../app/page_state";
import { Who } from "../values/text_view";
import { DaysPlot } from "./plot";
import { RuleCard } from "./rule_card";
import { BoundNote } from "./terms";

const DAYS = 7;
const RULES_SHOWN = 100;
const MODE_WORDS: Record<Mode, string> = {
  off: "Does nothing. A person decides every proposal.",
  shadow: "Predicts decisions and compares them with yours. A person decides every proposal.",
  suggest: "Suggests rules. Approves only what a rule that a person accepted covers.",
  act: "Also approves what its own rules cover, once their evidence is strong enough.",
};

export function AutopilotPane() {
  const page = useLive();
  const { autopilot } = page.space;
  const { rules, summary, id } = autopilot;
  return (
    <section class="autopilot-pane" aria-labelledby="autopilot-title">
      <header class="pane-head">
        <h2 id="autopilot-title">Autopilot</h2>
        {id !== null && (
          <span class="dim">
            <Who id={id} /> {page.space.participants.get(id)?.here === true ? "is online" : "is offline: a person decides every proposal"}
          </span>
        )}
      </header>
      <div class="autopilot-inside" tabIndex={-1}>
        {id === null ? (
          <NoAutopilot />
        ) : (
          <>
            {summary !== null && <Dial summary={summary} />}
            {summary !== null && <Summary summary={summary} />}
            <section class="rules" aria-labelledby="rules-title">
              <h3 id="rules-title">
                Rules <span class="count">{count(rules.length)}</span>
              </h3>
              {rules.length === 0 ? (
                <p class="dim">No rules yet. Approve a proposal with “Approve and don't ask again…”, or wait: the autopilot suggests a rule after several approvals of similar calls.</p>
              ) : (
                <BoundNote />
              )}
              {rules.slice(0, RULES_SHOWN).map((rule) => (
                <RuleCard key={rule.id} rule={rule} />
              ))}
              {rules.length > RULES_SHOWN && <p class="dim">and {count(rules.length - RULES_SHOWN)} more: mew rules list</p>}
            </section>
          </>
        )}
      </div>
    </section>
  );
}

function NoAutopilot() {
  return (
    <div class="nothing">
      <p>This space has no autopilot.</p>
      <p class="dim">
        An autopilot learns from your decisions which proposals need no person. To start one, add this to <code>space.yaml</code> and restart{" "}
        <code>mew up</code>:
      </p>
      <pre class="mono">{"autopilot:\n  mode: suggest"}</pre>
    </div>
  );
}

function Dial({ summary: { mode, configured } }: { summary: AutopilotSummary }) {
  const page = useLive();
  const mayTurn = configured !== "off" && page.may({ kind: "autopilot/mode", payload: { mode: "suggest" } });
  return (
    <fieldset class="dial">
      <legend>Mode</legend>
      <div class="dial-modes">
        {MODES.map((one) => (
          <label key={one} class={one === mode ? "chosen" : ""}>
            <input
              type="radio"
              name="mode"
              value={one}
              checked={one === mode}
              disabled={!mayTurn}
              onChange={(event) => {
                event.currentTarget.checked = false; // it is what the autopilot says it is
                void page.send({ kind: "autopilot/mode", payload: { mode: one } });
              }}
            />
            {one}
          </label>
        ))}
      </div>
      <p>{MODE_WORDS[mode]}</p>
      <p class="dim">
        {configured === "off" ? (
          <>
            It is switched off in the settings. To switch it on, set <code>autopilot: mode:</code> in <code>space.yaml</code>.
          </>
        ) : mayTurn ? (
          <>
            {mode !== configured && `The settings say ${configured}. `}To change it for good, set <code>autopilot: mode:</code> in <code>space.yaml</code>.
          </>
        ) : (
          <>
            You may not change the mode here. It is set by <code>autopilot: mode:</code> in <code>space.yaml</code>.
          </>
        )}
      </p>
    </fieldset>
  );
}

function Summary({ summary }: { summary: AutopilotSummary }) {
  const page = useLive();
  const { proposals, alone, audited, disagreed, objected, demoted, minutesSaved } = lastDays(summary, DAYS, page.now.value);
  const share = proposals === 0 ? 0 : Math.round((alone / proposals) * 100);
  const figures: [name: string, value: string, note: string][] = [
    ["decided alone", count(alone), `${share} % of ${counted(proposals, "proposal")}`],
    ["audited", count(audited), "covered by a rule, and asked all the same to check it"],
    ["disagreed", count(disagreed + objected), `${counted(disagreed, "rejected audit")}, ${counted(objected, "objection")}, ${counted(demoted, "demoted rule")}`],
    ["saved", minutesSaved < 1 ? `${Math.round(minutesSaved * 60)} s` : `${count(Math.round(minutesSaved))} min`, `a review takes ${lasting(summary.reviewS * 1000)} (median)`],
  ];
  return (
    <section class="figures" aria-labelledby="figures-title">
      <h3 id="figures-title">Last {DAYS} days</h3>
      <dl>
        {figures.map(([name, value, note]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <strong>{value}</strong> <small class="dim">{visible(note, 120)}</small>
            </dd>
          </div>
        ))}
      </dl>
      <DaysPlot days={summary.days} />
    </section>
  );
}
