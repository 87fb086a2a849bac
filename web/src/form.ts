/** PURE. A form made from a JSON Schema: what stands in its fields, and the values that these mean. */

import { type Json, type JsonObject, exactDigits, isObject, own, parseJson } from "./json";
import { type Fault, resolved, typesOf } from "./schema";
import { listIn, objectIn, textIn } from "./space/fields";

/** What stands in a field: the text as typed, and the value it means; undefined: left out. */
export interface Entry {
  text: string;
  value: Json | undefined;
  fault: string | null;
}

export type Entries = Record<string, Entry>;

/** One of the values that a field may have, and what it is called. */
export interface Choice {
  value: Json;
  words: string;
}

export const EMPTY: Entry = { text: "", value: undefined, fault: null };
// A form of somebody else's must not take longer to draw than anybody waits: what is too long to pick from is typed.
const FIELDS_MAX = 100;
const CHOICES_MAX = 300;
const SEVERAL_MAX = 60;
const LINE_MAX = 200;
/** A text that is longer than the field would be seen in part. */
const ONE_LINE_MAX = 80;
const ONE_LINE = /(path|file|folder|dir|directory|cwd|name|title|url|uri|host|branch|ref|id|key|email|source|destination|query)$/i;
const FORMATS: Record<string, [fits: (text: string) => boolean, fault: string]> = {
  email: [(text) => /^[^\s@]+@[^\s@]+$/.test(text), "must be an e-mail address"],
  uri: [(text) => URL.canParse(text), "must be a complete address, starting with https://"],
  date: [(text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)), "must be a date, such as 2026-01-31"],
  "date-time": [
    (text) => /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text)),
    "must be a date and time, such as 2026-01-31T10:00:00Z",
  ],
};

/** A field for all that the schema names and all that there is a value for. */
export function entriesFor(schema: JsonObject, values: JsonObject): Entries {
  const names = new Set([...Object.keys(objectIn(schema.properties)), ...Object.keys(values)]);
  return Object.fromEntries([...names].slice(0, FIELDS_MAX).map((name) => [name, entryOf(own(values, name))]));
}

/** What the schema itself would fill in. */
export function defaultsIn(schema: JsonObject): JsonObject {
  const fields = Object.keys(objectIn(schema.properties)).map((name) => [name, fieldOf(schema, name).default] as const);
  return Object.fromEntries(fields.filter((field): field is [string, Json] => field[1] !== undefined));
}

export function valuesIn(entries: Entries): JsonObject {
  const fields = Object.entries(entries).map(([name, { value }]) => [name, value] as const);
  return Object.fromEntries(fields.filter((field): field is [string, Json] => field[1] !== undefined));
}

/** With the values that the form had no room for: they stay as they are. */
export function withUnshown(values: JsonObject, entries: Entries): JsonObject {
  return { ...Object.fromEntries(Object.entries(values).filter(([name]) => !Object.hasOwn(entries, name))), ...valuesIn(entries) };
}

export function fieldOf(schema: JsonObject, name: string): JsonObject {
  return resolved(schema, own(objectIn(schema.properties), name));
}

export function isNeeded(schema: JsonObject, name: string): boolean {
  return listIn(schema.required).includes(name);
}

export function entryOf(value: Json | undefined): Entry {
  return { text: written(value), value, fault: null };
}

/** A value of whatever kind, as JSON. */
export function jsonEntry(value: Json): Entry {
  return { text: JSON.stringify(value, null, 2), value, fault: null };
}

/** What somebody typed, as what the field wants. */
export function entryTyped(text: string, schema: JsonObject, needed: boolean, before: Entry): Entry {
  return isText(schema, before) ? readText(text, needed, before) : readValue(text, typesOf(schema));
}

export function isText(schema: JsonObject, entry: Entry): boolean {
  const types = typesOf(schema);
  return types.includes("string") || (types.length === 0 && (entry.value === undefined || typeof entry.value === "string"));
}

/** Whether it is a text that has one line by its nature: Enter ends it, and makes no second line of it. */
export function isOneLine(schema: JsonObject, name: string, entry: Entry): boolean {
  if (!isText(schema, entry) || entry.text.length > ONE_LINE_MAX || /[\r\n]/.test(entry.text)) return false;
  const most = schema.maxLength;
  return (typeof most === "number" && most <= LINE_MAX) || Object.hasOwn(FORMATS, textIn(schema.format) ?? "") || ONE_LINE.test(name);
}

/** The values it may have, where these are listed, each with its name where it has one; null where they are not, or too many. */
export function choicesIn(schema: JsonObject, most = CHOICES_MAX): Choice[] | null {
  if (Array.isArray(schema.enum)) {
    const names = listIn(schema.enumNames);
    if (schema.enum.length > most) return null;
    return schema.enum.map((value, at) => ({ value, words: textIn(names[at]) ?? saying(value) }));
  }
  for (const listed of [listIn(schema.oneOf), listIn(schema.anyOf)]) {
    const titled = listed.filter(isObject).filter((one) => one.const !== undefined);
    if (titled.length === 0 || titled.length < listed.length || titled.length > most) continue;
    return titled.map(({ const: value = null, title }) => ({ value, words: textIn(title) ?? saying(value) }));
  }
  return typesOf(schema).join() === "boolean" ? [true, false].map((value) => ({ value, words: value ? "yes" : "no" })) : null;
}

/** Where several of some values may be picked: those values. */
export function severalIn(schema: JsonObject): Choice[] | null {
  return typesOf(schema).join() === "array" && isObject(schema.items) ? choicesIn(schema.items, SEVERAL_MAX) : null;
}

/** What is wrong with the form of texts that are to have one: an address, a date. */
export function formatFaults(schema: JsonObject, values: JsonObject): Fault[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const format = own(FORMATS, textIn(fieldOf(schema, name).format) ?? "");
    return format === undefined || typeof value !== "string" || format[0](value) ? [] : [{ path: [name], message: format[1] }];
  });
}

function written(value: Json | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  return exactDigits(value) ?? JSON.stringify(value, null, 2) ?? "";
}

function saying(value: Json): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Nothing typed is no text, unless there was one or one is needed. */
function readText(text: string, needed: boolean, before: Entry): Entry {
  const out = text === "" && !needed && before.value === undefined;
  return { text, value: out ? undefined : text, fault: null };
}

function readValue(text: string, types: string[]): Entry {
  if (text.trim() === "") return { text, value: undefined, fault: null };
  try {
    return { text, value: parseJson(text), fault: null };
  } catch {
    const wanted = types.some((type) => type === "number" || type === "integer") ? "This is not a number." : "This is not valid JSON.";
    return { text, value: undefined, fault: wanted };
  }
}
