import { describe, expect, it } from "vitest";

import { Filtered, NO_FILTER, threadOf } from "../src/components/stream/filter";
import { Heights } from "../src/components/stream/virtual_list";
import { faults } from "../src/schema";
import { differences } from "../src/space/differences";
import { globFits, mayDo } from "../src/space/capability_match";
import { inWords } from "../src/space/words";
import { Told } from "./envelopes";

describe("what one may do", () => {
  it("follows wildcards as the gateway does", () => {
    expect(globFits("mcp/*", "mcp/request")).toBe(true);
    expect(globFits("mcp/*", "mcp/a/b")).toBe(false);
    expect(globFits("/public/**", "/public/a/b")).toBe(true);
    expect(globFits("/public/**", "/public/../etc")).toBe(false);
    expect(globFits("file?.txt", "file1.txt")).toBe(true);
    expect(globFits("*a".repeat(30), "a".repeat(2_000) + "b")).toBe(false);
  });

  it("looks into the payload, at whom it is for, and at what is excepted", () => {
    const call = (name: string, to = "files") => ({ kind: "mcp/request", to: [to], payload: { method: "tools/call", params: { name } } });
    const held = [{ kind: "mcp/request", to: "files", payload: { method: "tools/call", params: { name: "read_*" } }, except: [{ kind: "mcp/request", payload: { params: { name: "read_secret" } } }] }];
    expect(mayDo(held, call("read_file"))).toBe(true);
    expect(mayDo(held, call("read_file", "eve"))).toBe(false);
    expect(mayDo(held, call("read_secret"))).toBe(false);
    expect(mayDo(held, call("write_file"))).toBe(false);
  });

  it("is said in words, what weighs most first", () => {
    const said = inWords([{ kind: "chat" }, { kind: "mcp/request", to: "files", payload: { method: "tools/call", params: { name: "read_*" } } }, { kind: "mcp/proposal" }]);
    expect(said.map((one) => one.words)).toEqual(["Use the tool read_*", "Propose anything on anyone", "Chat"]);
    expect(said[0]!.limits).toEqual(["only on files"]);
  });

  it.each(["constructor", "toString", "__proto__"])("is said of a method called %s, too", (method) => {
    expect(inWords([{ kind: "mcp/request", payload: { method } }])[0]!.words).toBe(`Use ${method}`);
  });
});

describe("arguments", () => {
  const schema = { type: "object", properties: { path: { type: "string", minLength: 1 }, times: { type: "integer", minimum: 1 }, mode: { enum: ["a", "b"] }, evil: { pattern: "(a+)+$" } }, required: ["path"], additionalProperties: false };

  it("are checked against the schema of the tool", () => {
    expect(faults(schema, { path: "x", times: 2, mode: "a" })).toEqual([]);
    expect(faults(schema, { times: 0, mode: "c", other: 1 }).map((fault) => fault.path[0])).toEqual(["path", "times", "mode", "other"]);
  });

  it("are not checked with expressions that may never end", () => {
    expect(faults(schema, { path: "x", evil: `${"a".repeat(200)}!` })).toEqual([]);
  });

  it.each([
    ["choices that are all tried", { pattern: `${"a?".repeat(40)}${"a".repeat(40)}` }, "a".repeat(40)],
    ["groups that are all tried", { pattern: `${"(a|a)".repeat(39)}b` }, "a".repeat(40)],
    ["repeats that end anywhere", { pattern: ".*.*.*.*x" }, "a".repeat(500)],
    ["a schema that leads in circles", { $ref: "#/$defs/round" }, "x"],
  ])("are not checked for ever: %s", (_what, field, value) => {
    const round = { allOf: Array.from({ length: 8 }, () => ({ $ref: "#/$defs/round" })) };
    const began = performance.now();
    expect(faults({ properties: { field }, $defs: { round } }, { field: value })).toEqual([]);
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  it("are checked with expressions that end soon", () => {
    const schema = { properties: { on: { pattern: "^\\d{4}-\\d{2}-\\d{2}$" }, as: { pattern: "^(a|b|c)$" } } };
    expect(faults(schema, { on: "2026-01-31", as: "b" })).toEqual([]);
    expect(faults(schema, { on: "today", as: "d" }).map(({ path }) => path[0])).toEqual(["on", "as"]);
  });

  it("have no more faults than can be shown", () => {
    const required = Array.from({ length: 10_000 }, (_, at) => `field${at}`);
    expect(faults({ required }, {})).toHaveLength(50);
  });

  it("are compared path by path", () => {
    expect(differences({ a: [1, { b: 2 }] }, { a: [1, { b: 3 }], c: null })).toEqual([
      { path: "a[1].b", old: 2, new: 3 },
      { path: "c", old: undefined, new: null },
    ]);
  });
});

describe("the filter of the stream", () => {
  it("finds what hangs together in a crowd, soon", () => {
    const told = new Told();
    for (let count = 0; count < 30_000; count += 1) told.say("eve", "x/y", {}, { context: "crowd" });
    const began = performance.now();
    expect(threadOf(told.space.rows, told.say("eve", "x/y", {}, { context: "crowd" })).size).toBeGreaterThan(10_000);
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  it("keeps up with what comes and goes", () => {
    const told = new Told();
    const filtered = new Filtered();
    const filter = { ...NO_FILTER, text: "Needle" };
    told.say("bot", "chat", { text: "hay" });
    told.say("bot", "chat", { text: "a needle" });
    expect(filtered.of(told.space.rows, filter)).toHaveLength(1);
    told.say("bot", "x/y", { deep: [{ needle: 1 }] });
    expect(filtered.of(told.space.rows, filter)).toHaveLength(2);
    expect(filtered.of(told.space.rows, { ...NO_FILTER, kind: "x" })).toHaveLength(1);
    expect(filtered.of(told.space.rows, { ...NO_FILTER, participant: "eve" })).toHaveLength(0);
  });

  it("finds what hangs together", () => {
    const told = new Told();
    const start = told.say("bot", "reasoning/start", {});
    const proposal = told.propose({}, { context: start.id });
    const request = told.fulfil(proposal);
    const answer = told.answer(request);
    told.say("bot", "chat", { text: "apart" });
    expect(threadOf(told.space.rows, request)).toEqual(new Set([request.id, proposal.id, start.id, answer.id]));
  });
});

describe("rows of unknown heights", () => {
  it("lie where they were measured, and where they were guessed", () => {
    const heights = new Heights(10);
    heights.reset(1_000, () => undefined);
    expect(heights.measure(500, 110)).toBe(100);
    expect(heights.total).toBe(10_100);
    expect(heights.offset(501)).toBe(5_110);
    expect(heights.rowAt(5_050)).toBe(500);
    expect(heights.rowAt(5_115)).toBe(501);
    expect(heights.rowAt(1e9)).toBe(999);
  });
});
