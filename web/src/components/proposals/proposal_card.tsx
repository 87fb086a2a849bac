/** One proposal: who proposes what, with which arguments and why, what was decided so far, and the buttons to decide it. */

import { useEffect, useMemo, useRef } from "preact/hooks";

import { digest } from "../../space/digest";
import { type Proposal, decidingIn, toolOf } from "../../space/proposals";
import type { Tool } from "../../space/tools";
import { counted, lasting, visible } from "../../text";
import { AboutTool, ToolChanged } from "./tool_description";
import { AskedBecause, Automatic, mayRatify } from "../autopilot/decision";
import { Before } from "./earlier_decisions";
import { useLive } from "../app/page_state";
import { type Disclosure, DisclosureProvider, useAppearance } from "../review/disclosure";
import { focusPane } from "../app/focus";
import { JsonTree } from "../values/json_view";
import { ProposalId } from "./proposal_id";
import { Rejections, Why } from "./proposal_text";
import { StatusChip, storyOf, useStatus } from "./status";
import { TITLE_MAX, cardLine } from "../values/summaries";
import { Ago, Whom, Who, Words, wholeTime } from "../values/text_view";
import { Arguments, Changes, FOLDED, MoreThanShown, Params } from "../values/arguments_view";

export function ProposalCard({ proposal }: { proposal: Proposal }) {
  const { decisions } = useLive();
  const card = useRef<HTMLElement>(null);
  const selected = decisions.selected.value === proposal.id;
  const underWay = decisions.underWay.value.has(proposal.id);
  const status = useStatus(proposal);
  const open = status === "open";
  useEffect(() => {
    if (selected) card.current?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  const what = toolOf(proposal) ?? proposal.method;
  const name = `card${selected ? " selected" : ""}${underWay ? " under-way" : ""}${open ? "" : ` closed ${status}`}`;
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
          aria-label={`select ${visible(what, 60)} (x)`}
        />
        <button type="button" class="card-title" aria-expanded={selected} onClick={() => decisions.select(selected ? null : proposal.id)}>
          <span class="card-who">
            <Who id={proposal.proposer} /> proposes
          </span>
          <strong class="card-what">
            <Words text={what} most={TITLE_MAX} />
          </strong>
          <span class="card-whom">
            on <Whom ids={proposal.to} {...(selected ? { most: Number.POSITIVE_INFINITY } : {})} />
          </span>
        </button>
        <span class="card-when">
          {open ? <Ago at={proposal.at} /> : <StatusChip proposal={proposal} />}
          <ProposalId proposal={proposal} />
        </span>
      </div>
      {open && <Marks proposal={proposal} />}
      {!selected && <Line proposal={proposal} />}
      {selected && <Inside proposal={proposal} />}
    </article>
  );
}

/** What a reviewer should know before opening the card. */
function Marks({ proposal }: { proposal: Proposal }) {
  const { space, now } = useLive();
  const { expiresAt, rejections } = proposal;
  const hasLeft = space.hasLeft(proposal);
  if (expiresAt === null && rejections.length === 0 && !hasLeft) return null;
  const left = `${visible(proposal.proposer, 60)} is no longer connected and may never see the outcome.`;
  return (
    <p class="card-marks">
      {hasLeft && (
        <span class="chip left" title={left}>
          proposer left
        </span>
      )}
      {expiresAt !== null && (
        <span class="chip expires" title={`Expires at ${wholeTime(expiresAt)}`}>
          expires in {lasting(expiresAt - now.value)}
        </span>
      )}
      {rejections.length > 0 && <span class="chip rejected">{counted(rejections.length, "rejection")}</span>}
    </p>
  );
}

function Line({ proposal }: { proposal: Proposal }) {
  const { text, isWhole } = cardLine(proposal);
  return <p class={isWhole ? "card-line whole" : "card-line"}>{text}</p>;
}

function Inside({ proposal }: { proposal: Proposal }) {
  const { decisions, space } = useLive();
  const disclosure = decisions.disclosure(proposal);
  useAppearance(disclosure);
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
      <DisclosureProvider value={disclosure}>
        <LongTitle proposal={proposal} />
        <Params proposal={proposal} />
      </DisclosureProvider>
      <Why proposal={proposal} />
      <Rejections proposal={proposal} />
      <Unrelated proposal={proposal} />
      <Before proposal={proposal} />
      {offered[0]?.schema != null && (
        <details class="more">
          <summary>Input schema of the tool</summary>
          <JsonTree value={offered[0].schema} open={2} />
        </details>
      )}
      <Digest proposal={proposal} />
      <AskedBecause proposal={proposal} />
      <Deciding proposal={proposal} disclosure={disclosure} />
    </div>
  );
}

/** Identifies exactly this operation: the same here, in the terminal and in the audit. */
function Digest({ proposal }: { proposal: Proposal }) {
  const { space } = useLive();
  const tool = toolOf(proposal);
  const schema = tool === null || proposal.to.length !== 1 ? null : (space.tools.get(proposal.to[0] ?? "", tool)?.schema ?? null);
  const whole = useMemo(() => digest(proposal.to, proposal.method, proposal.params, schema), [proposal, schema]);
  return (
    <p class="dim digest" title={whole ?? undefined}>
      digest <code>{whole === null ? "unavailable: no canonical form" : whole.slice(0, 16)}</code>
    </p>
  );
}

function Warnings({ proposal, offered }: { proposal: Proposal; offered: Tool[] }) {
  const { space } = useLive();
  const absent = proposal.to.filter((who) => space.participants.get(who)?.here !== true);
  const warnings: string[] = [];
  if (absent.length > 0) {
    const names = absent.map((who) => visible(who, 60)).join(", ");
    warnings.push(`${names} ${absent.length === 1 ? "is" : "are"} not connected: an approval would get no response.`);
  }
  if (toolOf(proposal) !== null && offered.length === 0) warnings.push("No participant has listed this tool, so the page cannot tell what it does.");
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

/** The name of what would be called, where it is too long for the title. */
function LongTitle({ proposal }: { proposal: Proposal }) {
  const tool = toolOf(proposal);
  const what = tool ?? proposal.method;
  return what.length <= TITLE_MAX ? null : <Arguments values={tool === null ? { method: what } : { name: what }} />;
}

/** Requests that name the proposal and ask for something else. */
function Unrelated({ proposal: { unrelated } }: { proposal: Proposal }) {
  const last = unrelated.at(-1);
  if (last === undefined) return null;
  return (
    <p class="dim unrelated" role="note">
      {counted(unrelated.length, "unrelated request")} {unrelated.length === 1 ? "names" : "name"} this proposal and {unrelated.length === 1 ? "does" : "do"} not
      approve it. The latest: <Who id={last.by} /> called <Words text={last.tool ?? last.method} most={TITLE_MAX} /> on <Whom ids={last.to} />.
    </p>
  );
}

function Deciding({ proposal, disclosure }: { proposal: Proposal; disclosure: Disclosure }) {
  const page = useLive();
  const { decisions, space } = page;
  if (!decisions.canDecide(proposal.id)) return <Decided proposal={proposal} />;
  const needsTarget = proposal.to.length === 0;
  const to = decisions.targets(proposal);
  const here = space.participants.listed.filter((one) => one.here && one.id !== space.me).map((one) => one.id);
  const mayApprove = space.mayApprove(proposal);
  const isFolded = !disclosure.isWhole;
  return (
    <>
      {needsTarget && mayApprove && (
        <label class="choose-target">
          Send it to
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
        {isFolded && mayApprove && <MoreThanShown disclosure={disclosure} then={() => focusPane("waiting")} />}
        <button
          type="button"
          class="approve"
          disabled={!mayApprove || to.length === 0 || isFolded}
          title={!mayApprove ? "You may not make this call yourself." : isFolded ? FOLDED : "Make this call in your name, exactly as shown above."}
          onClick={() => decisions.approve([proposal.id])}
        >
          Approve <kbd>a</kbd>
        </button>
        {mayRatify(page, proposal) && (
          <button
            type="button"
            disabled={isFolded || to.length === 0}
            title="Choose which such calls the autopilot approves from now on"
            onClick={() => (page.dialog.value = { is: "ladder", proposal: proposal.id })}
          >
            Approve and don't ask again… <kbd>A</kbd>
          </button>
        )}
        <button
          type="button"
          disabled={!mayApprove || toolOf(proposal) === null || to.length === 0}
          onClick={() => (page.dialog.value = { is: "edit", proposal: proposal.id, to })}
        >
          Edit… <kbd>e</kbd>
        </button>
        <button
          type="button"
          class="reject"
          disabled={!space.mayReject(proposal)}
          onClick={() => (page.dialog.value = { is: "reject", proposals: [proposal.id] })}
        >
          Reject… <kbd>r</kbd>
        </button>
        <button type="button" class="quiet" onClick={() => (page.dialog.value = { is: "chain", proposal: proposal.id })}>
          Chain <kbd>g</kbd>
        </button>
      </div>
    </>
  );
}

function Decided({ proposal }: { proposal: Proposal }) {
  const page = useLive();
  const deciding = decidingIn(proposal);
  const status = useStatus(proposal);
  const pending = page.decisions.underWay.value.has(proposal.id);
  return (
    <div class="decided">
      <p role="status">{pending ? "Your decision is about to be sent." : `${capital(storyOf(proposal, status, page.space.me))}.`}</p>
      {deciding?.edited === true && <Changes changes={deciding.changes} />}
      <Automatic proposal={proposal} />
      <button type="button" class="quiet" onClick={() => (page.dialog.value = { is: "chain", proposal: proposal.id })}>
        Chain <kbd>g</kbd>
      </button>
    </div>
  );
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
