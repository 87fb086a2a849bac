/** Editing what was proposed, and approving that: a form from the tool's schema, checked, with the difference shown. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";

import { type Entries, type Entry, entriesFor, jsonEntry, withUnshown } from "../../form";
import { type Json, type JsonObject, isObject } from "../../json";
import { faults } from "../../schema";
import { differences } from "../../space/differences";
import { argumentsOf, besideCall, toolOf } from "../../space/proposals";
import { visible } from "../../text";
import { useLive } from "../app/page_state";
import { DialogBox } from "../app/dialog";
import { Disclosure, DisclosureProvider, useAppearance } from "../review/disclosure";
import { Fields } from "../values/form_fields";
import { Arguments, Beside, Changes, MoreThanShown } from "../values/arguments_view";

/** Arguments that are no object are edited as JSON, in one field of this name. */
const WHOLE = "arguments";
const AS_JSON: JsonObject = { properties: { [WHOLE]: { type: "object" } } };

export function EditDialog({ id, to }: { id: string; to: string[] }) {
  const page = useLive();
  const proposal = page.space.proposals.get(id);
  const tool = proposal === undefined ? null : toolOf(proposal);
  const known = tool === null ? undefined : page.space.tools.get(to[0] ?? "", tool);
  const given = proposal === undefined ? undefined : argumentsOf(proposal);
  const asJson = given !== undefined && !isObject(given);
  const schema = known?.schema ?? {};
  const was: JsonObject = given === undefined ? {} : isObject(given) ? given : { [WHOLE]: given };
  const proposed = (): Entries => (asJson ? { [WHOLE]: jsonEntry(given) } : entriesFor(schema, was));
  const entries = useSignal<Entries>({ ...proposed(), ...page.edits.get(id) });
  const isLeftOver = useRef(false);
  const disclosure = useMemo(() => new Disclosure(proposal?.params ?? {}), [proposal]);
  useAppearance(disclosure);
  useEffect(() => () => {
    if (isLeftOver.current) page.tell("Nothing was approved. Your changes are kept: choose Edit to continue.");
  }, []);
  if (proposal === undefined || tool === null) return null;

  const values = withUnshown(was, entries.value);
  const now: Json | undefined = asJson ? values[WHOLE] : values;
  const unshown = Object.fromEntries(Object.entries(was).filter(([name]) => !Object.hasOwn(entries.value, name)));
  const beside = besideCall(proposal.params);
  const unread = Object.values(entries.value).some((entry) => entry.fault !== null);
  const wrong = known?.schema == null ? [] : faults(schema, now);
  const changes = differences(asJson ? given : was, now);
  const open = page.decisions.canDecide(id);
  const mayApprove = open && !unread && wrong.length === 0 && disclosure.isWhole;
  isLeftOver.current = open && (changes.length > 0 || unread);
  const done = (event: Event): void => {
    event.preventDefault();
    if (!mayApprove) return;
    isLeftOver.current = false;
    page.dialog.value = null;
    const params = { name: tool, ...(now === undefined ? {} : { arguments: now }), ...beside };
    page.decisions.decide([id], { is: "approve", ...(changes.length > 0 ? { params } : {}), to });
  };
  const write = (name: string, entry: Entry): void => {
    entries.value = { ...entries.value, [name]: entry };
    page.edits.keep(id, entries.value);
  };
  const asProposed = (): void => {
    entries.value = proposed();
    page.edits.drop(id);
  };
  return (
    <DialogBox title={`Edit and approve ${visible(tool, 80)}`} wide>
      <form
        class="form edit"
        onSubmit={done}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) done(event);
        }}
      >
        <div class="edit-fields">
          {asJson && <p class="warning">The arguments are not an object. Edit them as JSON.</p>}
          <Fields prefix="field" schema={asJson ? AS_JSON : schema} entries={entries.value} faults={wrong} takesFocus onEntry={write} />
          {Object.keys(entries.value).length === 0 && <p class="dim">This tool takes no arguments.</p>}
          <DisclosureProvider value={disclosure}>
            {Object.keys(unshown).length > 0 && (
              <div class="beside">
                <h3>Sent as proposed (not editable here)</h3>
                <Arguments values={unshown} />
              </div>
            )}
            {Object.keys(beside).length > 0 && <Beside values={beside} />}
          </DisclosureProvider>
          {known?.schema == null && <p class="warning">The tool's schema is unknown, so your changes are not validated.</p>}
        </div>
        <section class="edit-changes" aria-label="your changes">
          <h3>{changes.length === 0 ? "No changes yet" : "Your changes"}</h3>
          <Changes changes={changes} />
        </section>
        {!open && (
          <p class="warning" role="alert">
            The proposal can no longer be approved: it was decided, withdrawn or expired in the meantime.
          </p>
        )}
        {wrong.filter((fault) => !(fault.path[0] !== undefined && Object.hasOwn(entries.value, fault.path[0]))).map((fault) => (
          <p key={fault.path.join()} class="fault">
            {fault.path.length === 0 ? "The arguments" : visible(fault.path.join("."), 80)} {visible(fault.message, 200)}
          </p>
        ))}
        {!disclosure.isWhole && <MoreThanShown disclosure={disclosure} />}
        <div class="actions backwards">
          <button type="submit" class="approve" disabled={!mayApprove}>
            {changes.length === 0 ? "Approve as proposed" : "Approve with these changes"} <kbd>Ctrl+Enter</kbd>
          </button>
          <button type="button" onClick={() => (page.dialog.value = null)}>
            Cancel
          </button>
          {(changes.length > 0 || unread) && (
            <button type="button" class="quiet" onClick={asProposed}>
              Discard changes
            </button>
          )}
        </div>
      </form>
    </DialogBox>
  );
}
