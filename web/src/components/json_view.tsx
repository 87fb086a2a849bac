/** JSON as a tree that is opened branch by branch. */

import { useSignal } from "@preact/signals";

import { type Json, type JsonObject, exactDigits, isObject } from "../json";
import { count, counted, visible } from "../text";
import { LongText, Words } from "./text_view";

const SHOWN = 50;
const INLINE_MAX = 120;

export function JsonTree({ value, open = 2, name }: { value: Json | undefined; open?: number; name?: string }) {
  const label = name === undefined ? null : <span class="json-name">{visible(name)}: </span>;
  if (value === undefined) return null;
  if (isObject(value) || Array.isArray(value)) return <Branch value={value} open={open} label={label} name={name} />;
  return (
    <div class="json-leaf">
      {label}
      <Leaf value={value} />
    </div>
  );
}

function Branch(props: { value: Json[] | JsonObject; open: number; label: preact.ComponentChild; name: string | undefined }) {
  const { value, open, label } = props;
  const isOpen = useSignal(open > 0);
  const most = useSignal(SHOWN);
  const names = Object.keys(value);
  const size = Array.isArray(value) ? counted(names.length, "item") : counted(names.length, "field");
  if (names.length === 0) {
    return (
      <div class="json-leaf">
        {label}
        <span class="json-null">{Array.isArray(value) ? "[]" : "{}"}</span>
      </div>
    );
  }
  return (
    <details class="json" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        {label}
        <span class="json-size">{size}</span>
      </summary>
      {isOpen.value && (
        <div class="json-inside">
          {names.slice(0, most.value).map((key) => (
            <JsonTree key={key} name={key} value={(value as JsonObject)[key]} open={open - 1} />
          ))}
          {names.length > most.value && (
            <button type="button" class="quiet" onClick={() => (most.value += SHOWN * 4)}>
              {count(names.length - most.value)} more
            </button>
          )}
        </div>
      )}
    </details>
  );
}

export function Leaf({ value }: { value: Json }) {
  if (typeof value === "string") {
    if (value.length > INLINE_MAX || value.includes("\n")) return <LongText text={value} class="json-text" />;
    return (
      <span class="json-string">
        “<Words text={value} />”
      </span>
    );
  }
  if (value === null || typeof value === "boolean") return <span class="json-null">{String(value)}</span>;
  return <span class="json-number">{exactDigits(value) ?? String(value)}</span>;
}
