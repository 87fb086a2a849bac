/** The fields of a form that a JSON Schema describes: for what is edited, and for what is asked. */

import { useState } from "preact/hooks";

import { type Entries, type Entry, EMPTY, choicesIn, entryTyped, fieldOf, isNeeded, isOneLine, isText, severalIn } from "../../form";
import { type Json, type JsonObject, own } from "../../json";
import { type Fault, typesOf } from "../../schema";
import { same } from "../../space/differences";
import { listIn, textIn } from "../../space/fields";
import { isSeen, visible } from "../../text";
import { LongText, Words } from "./text_view";

interface FieldsProps {
  /** Before the names of fields in ids: two forms may be on the page. */
  prefix: string;
  schema: JsonObject;
  entries: Entries;
  faults: Fault[];
  disabled?: boolean;
  /** Where the dialog that the form is in puts the cursor. */
  takesFocus?: boolean;
  onEntry(name: string, entry: Entry): void;
}

export function Fields({ prefix, schema, entries, faults, disabled = false, takesFocus = false, onEntry }: FieldsProps) {
  return (
    <>
      {Object.keys(entries).map((name, at) => (
        <Field
          key={name}
          id={`${prefix}-${name}`}
          name={name}
          first={takesFocus && at === 0}
          schema={fieldOf(schema, name)}
          needed={isNeeded(schema, name)}
          entry={own(entries, name) ?? EMPTY}
          faults={faults.filter((fault) => fault.path[0] === name)}
          disabled={disabled}
          onEntry={(entry) => onEntry(name, entry)}
        />
      ))}
    </>
  );
}

interface FieldProps {
  id: string;
  name: string;
  first: boolean;
  schema: JsonObject;
  needed: boolean;
  entry: Entry;
  faults: Fault[];
  disabled: boolean;
  onEntry(entry: Entry): void;
}

function Field(props: FieldProps) {
  const { id, name, schema, needed, entry, faults } = props;
  const [title, described] = [textIn(schema.title), textIn(schema.description)];
  const Name = picksSeveral(schema, entry) ? "span" : "label"; // a group of boxes has a name of its own
  const invalid = entry.fault !== null || faults.length > 0;
  return (
    <div class="field">
      <Name class="field-name" {...(Name === "label" ? { for: id } : {})}>
        {title === null || title === name ? visible(name, 80) : <>{visible(title, 120)} <small class="dim">{visible(name, 60)}</small></>}{" "}
        {needed ? <small>required</small> : <small class="dim">optional</small>}
      </Name>
      {described !== null && (
        <p class="dim">
          <Words text={described} most={300} />
        </p>
      )}
      <Input {...props} invalid={invalid} />
      {!isSeen(entry.text) && (
        <div class="warning" role="note">
          The field contains characters that it cannot show: <LongText text={entry.text} />
        </div>
      )}
      {entry.fault !== null && <p class="fault">{entry.fault}</p>}
      {faults.map((fault) => (
        <p key={fault.path.join() + fault.message} class="fault">
          {visible([...fault.path.slice(1), ""].join(": "), 80)}
          {visible(fault.message, 200)}
        </p>
      ))}
    </div>
  );
}

function Input(props: FieldProps & { invalid: boolean }) {
  const { id, name, first, schema, needed, entry, invalid, disabled, onEntry } = props;
  const [oneLine] = useState(() => isOneLine(schema, name, entry)); // and stays so: whoever types in it would lose the cursor
  const common = { id, disabled, "aria-invalid": invalid, "data-first": first ? true : undefined };
  if (picksSeveral(schema, entry)) return <Several {...props} />;
  const choices = choicesIn(schema);
  if (choices !== null) {
    const at = choices.findIndex((choice) => same(choice.value, entry.value));
    return (
      <select
        {...common}
        value={String(at)}
        onChange={(event) => onEntry({ text: "", value: choices[Number(event.currentTarget.value)]?.value, fault: null })}
      >
        {(!needed || at < 0) && (
          <option value="-1">{entry.value !== undefined && at < 0 ? visible(JSON.stringify(entry.value)) : needed ? "choose…" : "not set"}</option>
        )}
        {choices.map((choice, place) => (
          <option key={place} value={String(place)}>
            {visible(choice.words, 80)}
          </option>
        ))}
      </select>
    );
  }
  const types = typesOf(schema).join();
  const text = isText(schema, entry);
  const typed = (written: string): void => onEntry(entryTyped(written, schema, needed, entry));
  if (!text && (types === "number" || types === "integer")) {
    return <input {...common} inputMode="decimal" value={entry.text} onInput={(event) => typed(event.currentTarget.value)} />;
  }
  if (text && oneLine) {
    const kind = own(KINDS, textIn(schema.format) ?? "") ?? {};
    return <input {...common} {...kind} value={entry.text} spellcheck={false} onInput={(event) => typed(event.currentTarget.value)} />;
  }
  const rows = Math.min(16, Math.max(1, entry.text.split("\n").length + (entry.text.length > 80 ? 1 : 0)));
  return (
    <textarea
      {...common}
      class={text ? "" : "mono"}
      rows={text ? rows : Math.max(3, rows)}
      value={entry.text}
      spellcheck={false}
      onInput={(event) => typed(event.currentTarget.value)}
    />
  );
}

/** Browsers check none of these for us: what was proposed is shown as it is, even where it does not fit. */
const KINDS: Record<string, { placeholder: string; inputMode: "email" | "url" | "text" }> = {
  email: { inputMode: "email", placeholder: "name@example.org" },
  uri: { inputMode: "url", placeholder: "https://" },
  date: { inputMode: "text", placeholder: "2026-01-31" },
  "date-time": { inputMode: "text", placeholder: "2026-01-31T10:00:00Z" },
};

/** What cannot be picked is not hidden: a list with anything else in it is shown as it is written. */
function picksSeveral(schema: JsonObject, entry: Entry): boolean {
  const choices = severalIn(schema);
  if (choices === null || (entry.value !== undefined && !Array.isArray(entry.value)) || entry.fault !== null) return false;
  return listIn(entry.value).every((one) => choices.some(({ value }) => same(value, one)));
}

function Several({ id, name, first, schema, entry, disabled, onEntry }: FieldProps) {
  const choices = severalIn(schema) ?? [];
  const picked = listIn(entry.value);
  const toggle = (value: Json, on: boolean): void => {
    const now = on ? [...picked, value] : picked.filter((one) => !same(one, value));
    onEntry({ text: "", value: now, fault: null });
  };
  return (
    <fieldset id={id} class="reasons" aria-label={visible(textIn(schema.title) ?? name, 80)} disabled={disabled}>
      {choices.map(({ value, words }, at) => (
        <label key={at} class="choice">
          <input
            type="checkbox"
            data-first={first && at === 0 ? true : undefined}
            checked={picked.some((one) => same(one, value))}
            onChange={(event) => toggle(value, event.currentTarget.checked)}
          />
          {visible(words, 80)}
        </label>
      ))}
    </fieldset>
  );
}
