/** Editing what was proposed, and approving that: a form from the tool's schema, checked, with the difference shown. */

import { useSignal } from "@preact/signals";

import { type Entries, type Entry, entriesFor, valuesIn } from "../form";
import { faults } from "../schema";
import { differences } from "../space/differences";
import { argumentsOf, isOpen, toolOf } from "../space/proposals";
import { visible } from "../text";
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
  const entries = useSignal<Entries>(entriesFor(schema, was));
  if (proposal === undefined || tool === null) return null;

  const values = valuesIn(entries.value);
  const unread = Object.values(entries.value).some((entry) => entry.fault !== null);
  const wrong = known?.schema == null ? [] : faults(schema, values);
  const changes = differences(was, values);
  const open = isOpen(proposal) && desk.decisions.canDecide(id);
  const done = (event: Event): void => {
    event.preventDefault();
    if (unread || wrong.length > 0 || !open) return;
    desk.dialog.value = null;
    const changed = changes.length > 0 ? { params: { ...proposal.params, arguments: values } } : {};
    desk.decisions.decide([id], { is: "approve", ...changed, to });
  };
  const write = (name: string, entry: Entry): void => {
    entries.value = { ...entries.value, [name]: entry };
  };
  return (
    <DialogBox title={`Edit ${visible(tool, 80)}, and approve`} wide>
      <form class="form edit" onSubmit={done}>
        <div class="edit-fields">
          <Fields prefix="field" schema={schema} entries={entries.value} faults={wrong} takesFocus onEntry={write} />
          {Object.keys(entries.value).length === 0 && <p class="dim">This tool takes no arguments.</p>}
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
        {wrong.filter((fault) => !(fault.path[0] !== undefined && fault.path[0] in entries.value)).map((fault) => (
          <p key={fault.path.join()} class="fault">
            {visible(fault.path.join("."), 80)} {visible(fault.message, 200)}
          </p>
        ))}
        <div class="actions">
          <button type="button" onClick={() => (desk.dialog.value = null)}>
            Back
          </button>
          <button type="submit" class="approve" disabled={unread || wrong.length > 0 || !open}>
            {changes.length === 0 ? "Approve as it is" : "Approve with these changes"}
          </button>
        </div>
      </form>
    </DialogBox>
  );
}
