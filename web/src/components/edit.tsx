/** Editing what was proposed, and approving that: a form from the tool's schema, checked, with the difference shown. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { type Entries, type Entry, entriesFor, withUnshown } from "../form";
import { faults } from "../schema";
import { differences } from "../space/differences";
import { argumentsOf, isOpen, toolOf } from "../space/proposals";
import { count, visible } from "../text";
import { useLive } from "./desk";
import { DialogBox } from "./dialog";
import { Fields } from "./form";
import { Changes } from "./values_view";

export function EditDialog({ id, to }: { id: string; to: string[] }) {
  const desk = useLive();
  const proposal = desk.space.proposals.get(id);
  const tool = proposal === undefined ? null : toolOf(proposal);
  const known = tool === null ? undefined : desk.space.tools.get(to[0] ?? "", tool);
  const schema = known?.schema ?? {};
  const was = proposal === undefined ? {} : argumentsOf(proposal);
  const entries = useSignal<Entries>({ ...entriesFor(schema, was), ...desk.edits.get(id) });
  const isLeftOver = useRef(false);
  useEffect(() => () => {
    if (isLeftOver.current) desk.tell("Nothing was approved. What you changed is kept: Edit brings it back.");
  }, []);
  if (proposal === undefined || tool === null) return null;

  const values = withUnshown(was, entries.value);
  const unshown = Object.keys(was).filter((name) => !Object.hasOwn(entries.value, name)).length;
  const unread = Object.values(entries.value).some((entry) => entry.fault !== null);
  const wrong = known?.schema == null ? [] : faults(schema, values);
  const changes = differences(was, values);
  const open = isOpen(proposal) && desk.decisions.canDecide(id);
  isLeftOver.current = open && (changes.length > 0 || unread);
  const done = (event: Event): void => {
    event.preventDefault();
    if (unread || wrong.length > 0 || !open) return;
    isLeftOver.current = false;
    desk.dialog.value = null;
    const changed = changes.length > 0 ? { params: { ...proposal.params, arguments: values } } : {};
    desk.decisions.decide([id], { is: "approve", ...changed, to });
  };
  const write = (name: string, entry: Entry): void => {
    entries.value = { ...entries.value, [name]: entry };
    desk.edits.keep(id, entries.value);
  };
  const asProposed = (): void => {
    entries.value = entriesFor(schema, was);
    desk.edits.drop(id);
  };
  return (
    <DialogBox title={`Edit ${visible(tool, 80)}, and approve`} wide>
      <form
        class="form edit"
        onSubmit={done}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) done(event);
        }}
      >
        <div class="edit-fields">
          <Fields prefix="field" schema={schema} entries={entries.value} faults={wrong} takesFocus onEntry={write} />
          {Object.keys(entries.value).length === 0 && <p class="dim">This tool takes no arguments.</p>}
          {unshown > 0 && <p class="warning">{count(unshown)} more arguments have no field here: they stay as they were proposed.</p>}
          {known?.schema == null && <p class="warning">The tool's schema was not seen: nothing is checked here.</p>}
        </div>
        <section class="edit-changes" aria-label="what you changed">
          <h3>{changes.length === 0 ? "Nothing changed yet" : "What you changed"}</h3>
          <Changes changes={changes} />
        </section>
        {!open && (
          <p class="warning" role="alert">
            It was decided in the meantime, and cannot be any more.
          </p>
        )}
        {wrong.filter((fault) => !(fault.path[0] !== undefined && Object.hasOwn(entries.value, fault.path[0]))).map((fault) => (
          <p key={fault.path.join()} class="fault">
            {visible(fault.path.join("."), 80)} {visible(fault.message, 200)}
          </p>
        ))}
        <div class="actions backwards">
          <button type="submit" class="approve" disabled={unread || wrong.length > 0 || !open}>
            {changes.length === 0 ? "Approve as it is" : "Approve with these changes"} <kbd>Ctrl+Enter</kbd>
          </button>
          <button type="button" onClick={() => (desk.dialog.value = null)}>
            Back
          </button>
          {(changes.length > 0 || unread) && (
            <button type="button" class="quiet" onClick={asProposed}>
              As it was proposed
            </button>
          )}
        </div>
      </form>
    </DialogBox>
  );
}
