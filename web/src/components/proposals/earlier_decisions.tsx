/** Earlier decisions about the same tool, on a proposal's card. */

import { type Likeness, type Precedent, precedents } from "../../space/precedents";
import { type Proposal, decidingIn, toolOf } from "../../space/proposals";
import { visible } from "../../text";
import { useLive } from "../app/page_state";
import { StatusChip } from "./status";
import { argumentsLine } from "../values/summaries";
import { Ago, Who } from "../values/text_view";

export function Before({ proposal }: { proposal: Proposal }) {
  const { space, now } = useLive();
  const before = precedents(space.proposals.all.values(), proposal, now.value);
  const what = visible(toolOf(proposal) ?? proposal.method, 60);
  if (before.length === 0) return <p class="dim before-none">No earlier decisions about {what}.</p>;
  const groups: [Likeness, string][] = [
    ["same", "this exact call"],
    ["own", "with other arguments"],
    ["others", "proposed by others"],
  ];
  const told = groups.map(([likeness, words]): [string, string] => [words, tally(before.filter((one) => one.likeness === likeness))]);
  return (
    <details class="more">
      <summary>
        Earlier decisions about {what}: {told.filter(([, times]) => times !== "").map(([words, times]) => `${words} (${times})`).join("; ")}
      </summary>
      <ul class="before">
        {before.slice(0, 8).map(({ proposal: one, likeness }) => (
          <li key={one.id}>
            <StatusChip proposal={one} /> {likeness === "others" && <Who id={one.proposer} />}{" "}
            <span class="arguments-line">{argumentsLine({ method: one.method, params: one.params }, 100)}</span>{" "}
            <small class="dim">
              <Ago at={one.at} />
            </small>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** `2 approved, 1 rejected` */
function tally(found: Precedent[]): string {
  const all = found.map(({ proposal }) => proposal);
  const done = all.filter((one) => decidingIn(one) !== undefined);
  const changed = done.filter((one) => decidingIn(one)?.edited === true);
  const undone = all.filter((one) => decidingIn(one) === undefined);
  const parts: [number, string][] = [
    [done.length - changed.length, "approved"],
    [changed.length, "approved with changes"],
    [undone.filter((one) => one.rejections.length > 0).length, "rejected"],
    [undone.filter((one) => one.rejections.length === 0).length, "undecided"],
  ];
  return parts.filter(([times]) => times > 0).map(([times, words]) => `${times} ${words}`).join(", ");
}
