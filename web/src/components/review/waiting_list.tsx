/** The waiting list: open proposals and questions, the oldest first. */

import { useEffect, useRef } from "preact/hooks";

import { type Item, isAsked } from "../../space/space";
import { count } from "../../text";
import { describe } from "./pending_text";
import { usePageState } from "../app/page_state";
import { followSelection } from "../app/focus";
import { ProposalCard } from "../proposals/proposal_card";
import { QuestionCard } from "./question_card";

const SHOWN_MAX = 60;
const EACH_MAX = 20;
const KEPT_MS = 6_000;
/** What somebody is reading stays longer. */
const READ_MS = 20_000;

/** What is listed: what waits, and what was just decided or closed while it was shown. */
function useListed(): Item[] {
  const page = usePageState();
  const { decisions, space } = page;
  const known = (id: string): Item | undefined => space.proposals.get(id) ?? space.questions.get(id);
  const kept = decisions.kept.value.map(known).filter((found) => found !== undefined);
  const waiting = fairly(page.waiting.value);
  const meant = new Set([decisions.selected.value, ...decisions.marked.value]); // nothing is decided that is not listed
  const also = page.waiting.value.filter(({ id }) => meant.has(id));
  const all = new Map([...waiting, ...kept, ...also].map((item) => [item.id, item]));
  return space.inOrder([...all.values()]);
}

/** Where there are too many to show, nobody's hide another's. */
function fairly(waiting: Item[]): Item[] {
  if (waiting.length <= SHOWN_MAX) return waiting;
  const counts = new Map<string, number>();
  return waiting
    .filter((item) => {
      const whose = isAsked(item) ? item.asker : item.proposer;
      const before = counts.get(whose) ?? 0;
      counts.set(whose, before + 1);
      return before < EACH_MAX;
    })
    .slice(0, SHOWN_MAX);
}

export function Waiting() {
  const page = usePageState();
  const { decisions } = page;
  const waiting = page.waiting.value;
  const listed = useListed();
  const before = useRef<Set<string>>(new Set());

  useEffect(() => {
    const now = new Set(waiting.map((proposal) => proposal.id));
    const isAutomatic = (id: string): boolean => {
      const proposal = page.space.proposals.get(id);
      return proposal !== undefined && page.automatic(proposal) !== null; // nobody was reading it: it is in the stream
    };
    const gone = [...before.current].filter((id) => !now.has(id) && !decisions.kept.value.includes(id) && !isAutomatic(id));
    before.current = now;
    if (gone.length > 0) {
      decisions.kept.value = [...decisions.kept.value, ...gone].slice(-20);
      const forget = (but: string | null): void => {
        decisions.kept.value = decisions.kept.value.filter((id) => !gone.includes(id) || id === but);
      };
      window.setTimeout(() => {
        const reading = decisions.selected.value;
        forget(reading === null || decisions.isMine(reading) ? null : reading);
      }, KEPT_MS);
      window.setTimeout(() => forget(null), READ_MS);
    }
    const selected = decisions.selected.value;
    const next = waiting.find((proposal) => decisions.canDecide(proposal.id))?.id ?? null;
    const stays = selected !== null && (now.has(selected) || decisions.kept.value.includes(selected));
    const isOver = !stays || (next !== null && decisions.isMine(selected) && !decisions.underWay.value.has(selected));
    if (isOver && !(decisions.isResting && next !== null)) decisions.offer(next);
  }, [waiting, decisions.kept.value, decisions.pending.value]);
  useEffect(followSelection, [decisions.selected.value]);

  const marked = [...decisions.marked.value].filter((id) => decisions.canDecide(id));
  const { space } = page;
  const left = waiting.filter((item) => !isAsked(item) && space.hasLeft(item) && space.mayReject(item) && decisions.canDecide(item.id));
  return (
    <section class="waiting" aria-labelledby="waiting-title">
      <header class="pane-head">
        <h2 id="waiting-title">
          Waiting for you <span class={waiting.length > 0 ? "count some" : "count"}>{count(waiting.length)}</span>
        </h2>
        {marked.length > 0 && (
          <div class="several" role="group" aria-label="selected proposals">
            <span>{marked.length} selected</span>
            <button type="button" class="approve small" onClick={() => decisions.approve(marked)}>
              Approve all
            </button>
            <button type="button" class="reject small" onClick={() => (page.dialog.value = { is: "reject", proposals: marked })}>
              Reject all
            </button>
            <button type="button" class="quiet" onClick={() => (decisions.marked.value = new Set())}>
              Clear selection
            </button>
          </div>
        )}
        {left.length > 0 && marked.length === 0 && (
          <button type="button" class="small clear-left" onClick={() => (page.dialog.value = { is: "clear", proposals: left.map(({ id }) => id) })}>
            Clear {count(left.length)} whose proposer left…
          </button>
        )}
      </header>
      <div class="cards" tabIndex={-1}>
        {listed.map((item) =>
          isAsked(item) ? <QuestionCard key={item.id} question={item} /> : <ProposalCard key={item.id} proposal={item} />,
        )}
        {waiting.length > listed.length && <p class="dim pad">and {count(waiting.length - listed.length)} more</p>}
        {listed.length === 0 && <Nothing />}
      </div>
      <Undo />
    </section>
  );
}

function Nothing() {
  const page = usePageState();
  if (!page.loaded.value) return <p class="dim pad">Loading…</p>;
  return (
    <div class="nothing">
      <p class="big" aria-hidden="true">
        ✓
      </p>
      <p>Nothing is waiting for you.</p>
      <p class="dim">Proposals and questions appear here as they arrive.<span class="with-keys"> Press ? for keyboard shortcuts.</span></p>
    </div>
  );
}

function Undo() {
  const page = usePageState();
  const { pending } = page.decisions;
  return (
    <div class="undo" role="status">
      {pending.value.map((one) => (
        <div key={one.key} class="undo-line">
          <span class="undo-clock" data-sending={one.is !== "waiting"} aria-hidden="true" />
          <span>
            {describe(one, page)}
            {one.is === "sending" && "…"}
          </span>
          {one.is !== "sending" && (
            <button type="button" onClick={() => page.decisions.undo(one.key)}>
              Undo <kbd>u</kbd>
            </button>
          )}
        </div>
      ))}
    </div>
  );
}
