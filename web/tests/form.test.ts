import { describe, expect, it } from "vitest";

import {
  EMPTY, choicesIn, defaultsIn, entriesFor, entryTyped, formatFaults, isOneLine, severalIn, valuesIn, withUnshown,
} from "../src/form";

const SCHEMA = {
  type: "object",
  properties: { name: { type: "string", default: "x" }, age: { type: "integer" }, colour: { $ref: "#/$defs/colour" } },
  $defs: { colour: { enum: ["r", "g"], enumNames: ["Red"] } },
};

describe("a form", () => {
  it("has a field for all that is named and all that there is, with what the schema fills in", () => {
    const entries = entriesFor(SCHEMA, { ...defaultsIn(SCHEMA), extra: [1] });
    expect(Object.keys(entries)).toEqual(["name", "age", "colour", "extra"]);
    expect(valuesIn(entries)).toEqual({ name: "x", extra: [1] });
  });

  it("reads what is typed as what the field wants", () => {
    expect(entryTyped("12", { type: "integer" }, true, EMPTY).value).toBe(12);
    expect(entryTyped("12", { type: "string" }, true, EMPTY).value).toBe("12");
    expect(entryTyped("", { type: "string" }, false, EMPTY).value).toBeUndefined();
    expect(entryTyped("twelve", { type: "integer" }, true, EMPTY).fault).toBe("This is not a number.");
  });

  it("offers what may be chosen by its name, in each way MCP has for that", () => {
    expect(choicesIn(SCHEMA.$defs.colour)).toEqual([{ value: "r", words: "Red" }, { value: "g", words: "g" }]);
    const titled = [{ const: 1, title: "One" }, { const: 2 }];
    expect(choicesIn({ oneOf: titled })).toEqual([{ value: 1, words: "One" }, { value: 2, words: "2" }]);
    expect(severalIn({ type: "array", items: { anyOf: titled } })).toHaveLength(2);
    expect(choicesIn({ type: "boolean" })?.map(({ value }) => value)).toEqual([true, false]);
    expect(choicesIn({ oneOf: [{ type: "string" }] })).toBeNull();
    expect(choicesIn({ enum: Array.from({ length: 1_000 }, (_, at) => at) })).toBeNull();
  });

  it("ends a text of one line with Enter, and leaves room for more in any other", () => {
    const written = { text: "a", value: "a", fault: null };
    expect(isOneLine({ type: "string" }, "filePath", written)).toBe(true);
    expect(isOneLine({ type: "string", maxLength: 80 }, "said", written)).toBe(true);
    expect(isOneLine({ type: "string" }, "content", written)).toBe(false);
    expect(isOneLine({ type: "string" }, "path", { ...written, text: "a\r\nb" })).toBe(false);
    expect(isOneLine({ type: "string" }, "path", { ...written, text: "a".repeat(81) })).toBe(false); // its end would be out of sight
    expect(isOneLine({ type: "array" }, "path", { ...written, value: [] })).toBe(false);
  });

  it("keeps what it has no field for", () => {
    const values = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`v${at}`, at]));
    const entries = entriesFor(SCHEMA, values);
    expect(Object.keys(entries)).toHaveLength(100);
    expect(withUnshown(values, entries)).toEqual(values);
  });

  it.each(["constructor", "toString", "__proto__"])("does not know a form of texts called %s", (name) => {
    const schema = JSON.parse(`{"properties": {"${name}": {"format": "${name}"}}}`);
    const values = JSON.parse(`{"${name}": "x"}`);
    expect(formatFaults(schema, values)).toEqual([]);
    expect(valuesIn(entriesFor(schema, values))).toEqual(values);
  });

  it("says where a text is not in the form that is asked for", () => {
    const schema = { properties: { mail: { format: "email" }, at: { format: "date-time" }, on: { format: "date" }, where: { format: "uri" }, any: { format: "odd" } } };
    expect(formatFaults(schema, { mail: "a@b", at: "2026-01-01T10:00:00Z", on: "2026-01-31", where: "https://x/", any: "" })).toEqual([]);
    expect(formatFaults(schema, { mail: "a", at: "10:00", on: "2026-13-01", where: "x" }).map(({ path }) => path[0])).toEqual(["mail", "at", "on", "where"]);
  });
});
