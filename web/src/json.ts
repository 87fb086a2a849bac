/** PURE. JSON that keeps every digit: what is approved must be what was proposed. */

export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

/** A number with more digits than JavaScript has room for. `JSON.stringify` writes it as it came. */
export type ExactNumber = JsonObject & { readonly rawJSON: string };

interface ExactJson {
  rawJSON?(text: string): ExactNumber;
  isRawJSON?(value: Json): value is ExactNumber;
}

const exact = JSON as ExactJson;
const MAY_LOSE = /\d[\d.]{15}|\d[eE]/;

/** Like `JSON.parse`, but for numbers that would lose digits: those become `ExactNumber`s, where the browser has them. */
export function parseJson(text: string): Json {
  if (!MAY_LOSE.test(text) || exact.rawJSON === undefined) return JSON.parse(text) as Json;
  return JSON.parse(text, keepDigits) as Json;
}

/** The digits of an `ExactNumber`; null for anything else. */
export function exactDigits(value: Json): string | null {
  return exact.isRawJSON?.(value) === true ? value.rawJSON : null;
}

/** An object of names and values: not null, no array, and no `ExactNumber`. */
export function isObject(value: Json | undefined): value is JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return exactDigits(value) === null;
}

/** What an object itself has under a name: names come from others, and `constructor` is one, too. */
export function own<Value>(object: { [name: string]: Value }, name: string): Value | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** How many values there are in a value, itself included, and how deep they lie; counting stops beyond `most`. */
export function sizeOfTree(value: Json, most: number): { values: number; depth: number } {
  let [values, depth] = [1, 0];
  if (!isObject(value) && !Array.isArray(value)) return { values, depth };
  for (const inner of Object.values(value)) {
    const size = sizeOfTree(inner, most - values);
    values += size.values;
    depth = Math.max(depth, size.depth + 1);
    if (values > most) break;
  }
  return { values, depth };
}

function keepDigits(_key: string, value: Json, context?: { source?: string }): Json {
  if (typeof value !== "number" || context?.source === undefined) return value;
  const kept = Number.isFinite(value) && significant(String(value)) === significant(context.source);
  return kept || exact.rawJSON === undefined ? value : exact.rawJSON(context.source);
}

/** The digits that matter: without sign, point, exponent, and zeros in front and behind. */
function significant(written: string): string {
  const mantissa = written.replace(/[eE].*$/, "").replace(/[-.]/g, "");
  return mantissa.replace(/^0+/, "").replace(/0+$/, "");
}
