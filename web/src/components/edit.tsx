/** Editing what was proposed, and approving that: a form from the tool's schema, checked, with the difference shown. */

import { useSignal } from "@preact/signals";

import { type Json, type JsonObject, exactDigits, parseJson } from "../json";
import { type Fault, faults, resolved, typesOf } from "../schema";
import { differences } from "../space/differences";
import { listIn, objectIn, textIn } from "../space/fields";
import { argumentsOf, isOpen, toolOf } from "../space/proposals";
import { visible } from "../text";
import { useLive } from "./desk";
import { DialogBox } from "./dialog";
import { Words } from "./text_view";
import { Changes } from "./values_view";

/** What stands in a field: the text as typed, and the value it means; undefined: left out. */
interface Entry {
  text: string;
  value: Json | undefined;
  fault: string | null;
}

export function EditDialog({ id, to }: { id: string; to: string[] }) {
  const desk = useLive();
  const proposal = desk.space.proposals.get(id);
  const tool = proposal === undefined ? null : toolOf(proposal);
  const known = tool === null ? undefined : desk.space.tools.get(to[0] ?? "", tool);
  const schema = known?.schema ?? {};
  const was = proposal === undefined ? {} : argumentsOf(proposal);
  const entries = useSignal<Record<string, Entry>>(begin(schema, was));
  if (proposal === undefined || tool === null) return null;

  const values = Object.fromEntries(
    Object.entries(entries.value).flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value] as const])),
  );
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
          {Object.keys(entries.value).map((name, at) => (
            <Field key={name} name={name} first={at === 0} root={schema} entry={entries.value[name] ?? EMPTY} faults={wrong} onEntry={(entry) => write(name, entry)} />
          ))}
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

const EMPTY: Entry = { text: "", value: undefined, fault: null };

/** A field for all that the schema names and all that was proposed. */
function begin(schema: JsonObject, was: JsonObject): Record<string, Entry> {
  const names = new Set([...Object.keys(objectIn(schema.properties)), ...Object.keys(was)]);
  return Object.fromEntries(
    [...names].slice(0, 200).map((name) => {
      const value = Object.hasOwn(was, name) ? was[name] : undefined;
      return [name, { text: written(value), value, fault: null }];
    }),
  );
}

function written(value: Json | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  return exactDigits(value) ?? JSON.stringify(value, null, 2) ?? "";
}

interface FieldProps {
  name: string;
  first: boolean;
  root: JsonObject;
  entry: Entry;
  faults: Fault[];
  onEntry(entry: Entry): void;
}

function Field({ name, first, root, entry, faults: all, onEntry }: FieldProps) {
  const schema = resolved(root, objectIn(root.properties)[name]);
  const needed = listIn(root.required).includes(name);
  const own = all.filter((fault) => fault.path[0] === name);
  const described = textIn(schema.description);
  const id = `field-${name}`;
  return (
    <div class="field">
      <label for={id}>
        {visible(name, 80)} {needed ? <small>needed</small> : <small class="dim">may be left out</small>}
      </label>
      {described !== null && (
        <p class="dim">
          <Words text={described} most={300} />
        </p>
      )}
      <Input id={id} first={first} schema={schema} needed={needed} entry={entry} invalid={entry.fault !== null || own.length > 0} onEntry={onEntry} />
      {entry.fault !== null && <p class="fault">{entry.fault}</p>}
      {own.map((fault) => (
        <p key={fault.path.join() + fault.message} class="fault">
          {visible([...fault.path.slice(1), ""].join(": "), 80)}
          {visible(fault.message, 200)}
        </p>
      ))}
    </div>
  );
}

interface InputProps {
  id: string;
  first: boolean;
  schema: JsonObject;
  needed: boolean;
  entry: Entry;
  invalid: boolean;
  onEntry(entry: Entry): void;
}

function Input({ id, first, schema, needed, entry, invalid, onEntry }: InputProps) {
  const types = typesOf(schema);
  const common = { id, "aria-invalid": invalid, "data-first": first ? true : undefined };
  const choices = Array.isArray(schema.enum) ? schema.enum : types.join() === "boolean" ? [true, false] : null;
  if (choices !== null) {
    const at = choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(entry.value));
    return (
      <select {...common} value={String(at)} onChange={(event) => onEntry({ text: "", value: choices[Number(event.currentTarget.value)], fault: null })}>
        {(!needed || at < 0) && <option value="-1">left out</option>}
        {choices.map((choice, place) => (
          <option key={place} value={String(place)}>
            {typeof choice === "string" ? visible(choice, 80) : JSON.stringify(choice)}
          </option>
        ))}
      </select>
    );
  }
  const isText = types.includes("string") || (types.length === 0 && (entry.value === undefined || typeof entry.value === "string"));
  const read = (text: string): Entry => (isText ? readText(text, needed, entry) : readValue(text, types));
  const rows = Math.min(16, Math.max(1, entry.text.split("\n").length + (entry.text.length > 80 ? 1 : 0)));
  if (!isText && (types.join() === "number" || types.join() === "integer")) {
    return <input {...common} inputMode="decimal" value={entry.text} onInput={(event) => onEntry(read(event.currentTarget.value))} />;
  }
  return (
    <textarea {...common} class={isText ? "" : "mono"} rows={isText ? rows : Math.max(3, rows)} value={entry.text} spellcheck={false} onInput={(event) => onEntry(read(event.currentTarget.value))} />
  );
}

/** Nothing typed is no text, unless there was one or one is needed. */
function readText(text: string, needed: boolean, before: Entry): Entry {
  const out = text === "" && !needed && before.value === undefined;
  return { text, value: out ? undefined : text, fault: null };
}

function readValue(text: string, types: string[]): Entry {
  if (text.trim() === "") return { text, value: undefined, fault: null };
  try {
    const value = parseJson(text);
    return { text, value, fault: null };
  } catch {
    const wanted = types.some((type) => type === "number" || type === "integer") ? "This is no number." : "This is not JSON yet.";
    return { text, value: undefined, fault: wanted };
  }
}
