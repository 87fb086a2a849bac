/** One proposal that waits: who, what, with which arguments, why, and what was decided before. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";

import { digest } from "../space/digest";
import { objectIn, textIn } from "../space/fields";
import { type Proposal, argumentsOf, isOpen, statusOf, toolOf } from "../space/proposals";
import type { Tool } from "../space/tools";
import { lasting, visible } from "../text";
import { AboutTool, ToolChanged } from "./about_tool";
import { Before } from "./before";
import { useLive } from "./desk";
import { JsonTree } from "./json_view";
import { StatusChip, storyOf } from "./status";
import { argumentsLine } from "./summaries";
import { Ago, LongText, Whom, Who, Words } from "./text_view";
import { Arguments, Changes } from "./values_view";

export function ProposalCard({ proposal }: { proposal: Proposal }) {
  const { decisions } = useLive();
  const card = useRef<HTMLElement>(null);
  const selected = decisions.selected.value === proposal.id;
  const underWay = decisions.underWay.value.has(proposal.id);
  const open = isOpen(proposal);
  useEffect(() => {
    if (selected) card.current?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  const what = toolOf(proposal) ?? proposal.method;
  const name = `card${selected ? " selected" : ""}${underWay ? " under-way" : ""}${open ? "" : ` closed ${statusOf(proposal)}`}`;
  return (
    <article
      ref={card}
      class={name}
      data-proposal={visible(proposal.id, 80)}
      aria-label={`${visible(proposal.proposer, 60)} proposes ${visible(what, 80)}`}
    >
      <div class="card-head">
        <input
          type="checkbox"
          checked={decisions.marked.value.has(proposal.id)}
          disabled={!decisions.canDecide(proposal.id)}
          onChange={() => decisions.toggleMark(proposal.id)}
          aria-label={`pick ${visible(what, 60)} (x)`}
        />
        <button type="button" class="card-title" aria-expanded={selected} onClick={() => decisions.select(selected ? null : proposal.id)}>
          <span class="card-who">
            <Who id={proposal.proposer} /> proposes
          </span>
          <strong class="card-what">
            <Words text={what} most={120} />
          </strong>
          <span class="card-whom">
            of <Whom ids={proposal.to} />
          </span>
        </button>
        <span class="card-when">{open ? <Ago at={proposal.at} /> : <StatusChip proposal={proposal} />}</span>
      </div>
      {!selected && <p class="card-line">{argumentsLine({ method: proposal.method, params: proposal.params })}</p>}
      {selected && <Inside proposal={proposal} />}
    </article>
  );
}

function Inside({ proposal }: { proposal: Proposal }) {
  const { space } = useLive();
  const tool = toolOf(proposal);
  const targets = tool === null ? [] : space.targetsOf(proposal);
  const offered = targets.map((who) => space.tools.get(who, tool ?? "")).filter((found) => found !== undefined);
  return (
    <div class="card-inside">
      {offered.slice(0, 3).map((one) => (
        <AboutTool key={one.participant} tool={one} told={space.tools.changedSince(proposal.id, one.participant) !== null} />
      ))}
      {offered.slice(0, 3).map(({ participant }) => (
        <ToolChanged key={participant} proposal={proposal} participant={participant} />
      ))}
      <Warnings proposal={proposal} offered={offered} />
      {tool === null ? <Arguments values={proposal.params} /> : <Arguments values={argumentsOf(proposal)} />}
      <Beside proposal={proposal} />
      <Why proposal={proposal} />
      <Before proposal={proposal} />
      {offered[0]?.schema != null && (
        <details class="more">
          <summary>What the tool takes (its schema)</summary>
          <JsonTree value={offered[0].schema} open={2} />
        </details>
      )}
      <Digest proposal={proposal} />
      <Deciding proposal={proposal} />
    </div>
  );
}

/** What identifies exactly this operation: the same here, in the terminal and in the audit. */
function Digest({ proposal }: { proposal: Proposal }) {
  const { space } = useLive();
  const tool = toolOf(proposal);
  const schema = tool === null || proposal.to.length !== 1 ? null : (space.tools.get(proposal.to[0] ?? "", tool)?.schema ?? null);
  const whole = useMemo(() => digest(proposal.to, proposal.method, proposal.params, schema), [proposal, schema]);
  return (
    <p class="dim digest" title={whole ?? undefined}>
      digest <code>{whole === null ? "none: it has no canonical form" : whole.slice(0, 16)}</code>
    </p>
  );
}

function Warnings({ proposal, offered }: { proposal: Proposal; offered: Tool[] }) {
  const { space, now } = useLive();
  const absent = proposal.to.filter((who) => space.participants.get(who)?.here !== true);
  const warnings: string[] = [];
  if (absent.length > 0) warnings.push(`${absent.map((who) => visible(who, 60)).join(", ")} is not here now: an approval would not be answered.`);
  if (toolOf(proposal) !== null && offered.length === 0) warnings.push("Nobody was seen to list this tool: what it does is not known here.");
  if (proposal.expiresAt !== null && isOpen(proposal)) {
    const left = proposal.expiresAt - now.value;
    warnings.push(left > 0 ? `Its proposer waits ${lasting(left)} more.` : "Its proposer said it would not wait any longer.");
  }
  return (
    <>
      {warnings.map((words) => (
        <p key={words} class="warning" role="note">
          {words}
        </p>
      ))}
    </>
  );
}

/** What the call carries beside its name and arguments: nothing of it is hidden. */
function Beside({ proposal }: { proposal: Proposal }) {
  if (toolOf(proposal) === null) return null;
  const usual = new Set(["name", "arguments"]);
  const rest = Object.fromEntries(Object.entries(proposal.params).filter(([name]) => !usual.has(name)));
  const onlyProgress = Object.keys(rest).length === 1 && Object.keys(objectIn(rest._meta)).join() === "progressToken";
  if (Object.keys(rest).length === 0 || onlyProgress) return null;
  return (
    <details class="more">
      <summary>Sent along with it</summary>
      <JsonTree value={rest} />
    </details>
  );
}

function Why({ proposal }: { proposal: Proposal }) {
  const { space } = useLive();
  const isOpenHere = useSignal(false);
  const within = space.reasonings.within(proposal.context);
  const reasoning = within ?? space.reasonings.before(proposal.proposer, proposal.at);
  const remarks = proposal.remarks.slice(-3);
  if (reasoning === undefined && remarks.length === 0) return null;
  const last = reasoning?.conclusion ?? reasoning?.thoughts.at(-1);
  return (
    <div class="why">
      <h3>Why</h3>
      {remarks.map((remark) => (
        <blockquote key={remark.id}>
          <Who id={remark.by} />: <Words text={remark.text} most={600} />
        </blockquote>
      ))}
      {reasoning !== undefined && (
        <details open={isOpenHere.value} onToggle={(event) => (isOpenHere.value = event.currentTarget.open)}>
          <summary>
            <Words text={textIn((last ?? reasoning.start).payload?.message) ?? ""} most={400} />{" "}
            <small class="dim">
              {within === undefined ? "its last reasoning before" : whose(within.start.from, proposal)}
            </small>
          </summary>
          {isOpenHere.value && (
            <ol class="thoughts">
              {[reasoning.start, ...reasoning.thoughts, ...(reasoning.conclusion === null ? [] : [reasoning.conclusion])].slice(-60).map((one) => (
                <li key={one.id}>
                  <LongText text={textIn(one.payload?.message) ?? ""} first={600} />
                </li>
              ))}
            </ol>
          )}
        </details>
      )}
    </div>
  );
}

/** Anybody can name another's reasoning as the context of what it proposes. */
function whose(thinker: string, { proposer }: Proposal): string {
  return thinker === proposer ? "its reasoning" : `the reasoning of ${visible(thinker, 60)}, which it names`;
}

function Deciding({ proposal }: { proposal: Proposal }) {
  const desk = useLive();
  const { decisions, space } = desk;
  if (!decisions.canDecide(proposal.id)) return <Decided proposal={proposal} />;
  const needsTarget = proposal.to.length === 0;
  const to = decisions.targets(proposal);
  const here = space.participants.listed.filter((one) => one.here && one.id !== space.me).map((one) => one.id);
  const mayApprove = space.mayApprove(proposal);
  return (
    <>
      {needsTarget && mayApprove && (
        <label class="choose-target">
          Who is to do it?
          <select value={to[0] ?? ""} onChange={(event) => decisions.choose(proposal.id, event.currentTarget.value)}>
            <option value="">choose…</option>
            {[...new Set([...space.targetsOf(proposal), ...here])].map((id) => (
              <option key={id} value={id}>
                {visible(id, 60)}
              </option>
            ))}
          </select>
        </label>
      )}
      <div class={decisions.guarded.value ? "deciding guarded" : "deciding"}>
        <button
          type="button"
          class="approve"
          disabled={!mayApprove || to.length === 0}
          title={mayApprove ? "make this call, exactly as it is above, in your name" : "you may not make this call yourself"}
          onClick={() => decisions.approve([proposal.id])}
        >
          Approve <kbd>a</kbd>
        </button>
        <button
          type="button"
          disabled={!mayApprove || toolOf(proposal) === null || to.length === 0}
          onClick={() => (desk.dialog.value = { is: "edit", proposal: proposal.id, to })}
        >
          Edit… <kbd>e</kbd>
        </button>
        <button
          type="button"
          class="reject"
          disabled={!space.mayReject(proposal)}
          onClick={() => (desk.dialog.value = { is: "reject", proposals: [proposal.id] })}
        >
          Reject… <kbd>r</kbd>
        </button>
        <button type="button" class="quiet" onClick={() => (desk.dialog.value = { is: "chain", proposal: proposal.id })}>
          Chain <kbd>g</kbd>
        </button>
      </div>
    </>
  );
}

function Decided({ proposal }: { proposal: Proposal }) {
  const desk = useLive();
  const first = proposal.fulfilments[0];
  const pending = desk.decisions.underWay.value.has(proposal.id);
  return (
    <div class="decided">
      <p role="status">{pending ? "Your decision is on its way." : `${capital(storyOf(proposal))}.`}</p>
      {first?.edited === true && <Changes changes={first.changes} />}
      <button type="button" class="quiet" onClick={() => (desk.dialog.value = { is: "chain", proposal: proposal.id })}>
        Chain <kbd>g</kbd>
      </button>
    </div>
  );
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
