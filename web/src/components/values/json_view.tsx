/** JSON as a tree that is opened branch by branch. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo } from "preact/hooks";

import { type Json, type JsonObject, exactDigits, isObject, sizeOfTree } from "../../json";
import { count, counted } from "../../text";
import { useDisclosure, useFolded } from "../review/disclosure";
import { LongText, Words } from "./text_view";

const SHOWN = 50;
const INLINE_MAX = 120;
const NAME_MAX = 120;
/** A tree of fewer values is shown with all of its branches open, where it is part of what is to be approved. */
const OPEN_VALUES_MAX = 200;
/** A tree of more values is shown as text, where all of it is asked for: to draw it would take too long. */
export const DRAWN_VALUES_MAX = 2_000;
/** Indentation of deeper trees would take more room than what they hold. */
const INDENTED_DEPTH_MAX = 8;

/** A value of a proposal's params: all of it to be seen before it is approved. */
export function WholeTree({ value }: { value: Json }) {
  const disclosure = useDisclosure();
  const { values } = useMemo(() => sizeOfTree(value, DRAWN_VALUES_MAX), [value]);
  if (disclosure === null) return <JsonTree value={value} />;
  if (disclosure.asked.value > 0 && values > DRAWN_VALUES_MAX) return <JsonText value={value} />;
  return <JsonTree value={value} open={values <= OPEN_VALUES_MAX ? Number.POSITIVE_INFINITY : 2} />;
}

/** JSON as it is written. */
export function JsonText({ value }: { value: Json }) {
  const text = useMemo(() => {
    const { depth } = sizeOfTree(value, Number.POSITIVE_INFINITY);
    return JSON.stringify(value, null, depth <= INDENTED_DEPTH_MAX ? 2 : 0);
  }, [value]);
  return <LongText text={text} class="block" />;
}

/** The name of a field: none passes for another, and none is cut. */
export function FieldName({ name }: { name: string }) {
  if (name.length > NAME_MAX) return <LongText text={name} first={NAME_MAX} />;
  return name === "" || name.trim() !== name ? <Words text={`“${name}”`} /> : <Words text={name} />;
}

export function JsonTree({ value, open = 2, name }: { value: Json | undefined; open?: number; name?: string }) {
  const label =
    name === undefined ? null : (
      <span class="json-name">
        <FieldName name={name} />:{" "}
      </span>
    );
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
  const asked = useDisclosure()?.asked.value ?? 0;
  const isOpen = useSignal(open > 0);
  const most = useSignal(open === Number.POSITIVE_INFINITY ? open : SHOWN);
  const names = Object.keys(value);
  useLayoutEffect(() => {
    if (asked === 0) return;
    isOpen.value = true;
    most.value = Number.POSITIVE_INFINITY;
  }, [asked]);
  useFolded(names.length > 0 && (!isOpen.value || names.length > most.value));
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
              Show {count(names.length - most.value)} more
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
