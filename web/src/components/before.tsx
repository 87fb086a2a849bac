/** How the same was decided before, in a proposal's card. */

import { type Likeness, type Precedent, precedents } from "../space/precedents";
import { type Proposal, statusOf, toolOf } from "../space/proposals";
import { visible } from "../text";
import { useLive } from "./desk";
import { StatusChip, storyOf } from "./status";
import { argumentsLine } from "./summaries";
import { Ago, Who } from "./text_view";

export function Before({ proposal }: { proposal: Proposal }) {
  const { space } = useLive();
  const before = precedents(space.proposals.all.values(), proposal);
  const what = visible(toolOf(proposal) ?? proposal.method, 60);
  if (before.length === 0) return <p class="dim before-none">No {what} was decided before, as far as is shown here.</p>;
  const groups: [Likeness, string][] = [
    ["same", "just this call"],
    ["own", "with other arguments"],
    ["others", "proposed by others"],
  ];
  const told = groups.map(([likeness, words]): [string, string] => [words, tally(before.filter((one) => one.likeness === likeness))]);
  return (
    <details class="more">
      <summary>
        {what} before: {told.filter(([, times]) => times !== "").map(([words, times]) => `${words} ${times}`).join("; ")}
      </summary>
      <ul class="before">
        {before.slice(0, 8).map(({ proposal: one, likeness }) => (
          <li key={one.id}>
            <StatusChip proposal={one} /> {likeness === "others" && <Who id={one.proposer} />}{" "}
            <span class="arguments-line">{argumentsLine({ method: one.method, params: one.params }, 100)}</span>{" "}
            <small class="dim">
              {storyOf(one)}, <Ago at={one.at} />
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
  const done = all.filter((one) => ["fulfilled", "approved", "failed"].includes(statusOf(one)));
  const changed = done.filter(({ fulfilments: [first] }) => first?.edited === true);
  const parts: [number, string][] = [
    [done.length - changed.length, "approved"],
    [changed.length, "approved with changes"],
    [all.filter((one) => one.rejections.length > 0 && one.fulfilments.length === 0).length, "rejected"],
    [all.filter((one) => one.rejections.length === 0 && ["withdrawn", "timed_out"].includes(statusOf(one))).length, "not decided"],
  ];
  return parts.filter(([times]) => times > 0).map(([times, words]) => `${times} ${words}`).join(", ");
}
