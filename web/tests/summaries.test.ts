import { describe, expect, it } from "vitest";

import { type Json, type JsonObject, parseJson } from "../src/json";
import { answerText, argumentsLine, callLine, cardLine, isFailure, lineOf } from "../src/components/values/summaries";

describe("an envelope in one line", () => {
  it.each(["constructor", "toString", "valueOf", "__proto__"])("names a kind called %s as any that nobody knows", (kind) => {
    expect(lineOf({ protocol: "mew/v0.4", id: "e1", from: "eve", kind, payload: { x: 1 } })).toBe(`sends ${kind} {x}`);
  });

  const line = (kind: string, payload: JsonObject, about?: Parameters<typeof lineOf>[1]): string =>
    lineOf({ protocol: "mew/v0.4", id: "e1", from: "ann", kind, payload }, about);

  it("says which proposal is rejected or taken back, and why in words", () => {
    const about = { proposer: "bot", method: "tools/call", params: { name: "write_file", arguments: { path: "a.txt" } } };
    expect(line("mcp/reject", { reason: "disagree" }, about)).toBe("rejects bot's proposal of write_file (path: a.txt): disagree");
    expect(line("mcp/reject", { reason: "resource_limit" })).toBe("rejects a proposal: resource limit");
    expect(line("mcp/withdraw", { reason: "no_longer_needed" }, about)).toBe(
      "withdraws its proposal of write_file (path: a.txt): no longer needed",
    );
  });

  it("says what is taken away, and counts as people do", () => {
    expect(line("capability/revoke", { recipient: "agent", grant_id: "g1" })).toBe("revokes a grant of agent");
    expect(line("participant/status", { tokens: 1, messages_in_context: 1 })).toBe("reports its status: 1 token, 1 message in context");
    expect(line("participant/status", { tokens: 1e308 })).toBe("reports its status: 1.00e308 tokens");
    expect(answerText({ result: { tools: [{ name: "x" }] } })).toBe("1 tool: x");
  });

  it("hides no end of an argument behind spaces", () => {
    const path = `a.txt${" ".repeat(400)}/../../.ssh/authorized_keys`;
    expect(argumentsLine({ method: "tools/call", params: { name: "write_file", arguments: { path } } })).toBe(
      "path: a.txt[400 spaces]/../../.ssh/authorized_keys",
    );
  });

  it("says what an answer to a question was, and no word of ours for what is none", () => {
    expect(answerText({ result: { action: "decline" } })).toBe("declines");
    expect(answerText({ result: { action: "constructor" } })).toBe('{"action":"constructor"}');
  });
});

describe("what a call is made with, in one line", () => {
  const call = (given: Json, beside: JsonObject = {}): ReturnType<typeof callLine> =>
    callLine({ method: "tools/call", params: { name: "run", arguments: given, ...beside } });

  it("is whole where it is short, with all that is sent along", () => {
    expect(call({ path: "a.txt", mode: 7, deep: { list: [1, null] } })).toEqual({
      text: 'path: a.txt, mode: 7, deep: {"list":[1,null]}',
      isWhole: true,
    });
    expect(call({ path: "a" }, { _meta: { progressToken: "mew" } }).text).toBe('path: a; with _meta: {"progressToken":"mew"}');
    expect(call({}, { _meta: { x: 1 } })).toEqual({ text: 'with _meta: {"x":1}', isWhole: true });
    expect(callLine({ method: "tools/call", params: { name: "run" } })).toEqual({ text: "", isWhole: true });
    expect(callLine({ method: "resources/read", params: { uri: "x:y", _meta: {} } }).text).toBe("uri: x:y, _meta: {}");
  });

  it.each<[Json, string]>([
    [["rm", "-rf"], '["rm","-rf"]'],
    ["rm -rf /", '"rm -rf /"'],
    [7, "7"],
    [null, "null"],
    [false, "false"],
    [[], "[]"],
  ])("shows arguments that are no object: %j", (given, text) => {
    expect(call(given)).toEqual({ text, isWhole: true });
  });

  it("shows all of the params where the name of the tool is no text", () => {
    const params = { name: 5, arguments: { a: 1 } };
    expect(callLine({ method: "tools/call", params })).toEqual({ text: 'name: 5, arguments: {"a":1}', isWhole: true });
  });

  it("puts a text in quotes that could be taken for anything else", () => {
    expect(call({ a: "1" }).text).toBe('a: "1"');
    expect(call({ a: "x, b: 2" }).text).toBe('a: "x, b: 2"');
    expect(call({ a: "x; with _meta: 1" }).text).toBe('a: "x; with _meta: 1"');
    expect(call({ a: "" }).text).toBe('a: ""');
    expect(call({ a: " x" }).text).toBe('a: " x"');
    expect(call({ a: "# Plan\n\n- rest\n" })).toEqual({ text: 'a: "# Plan\\n\\n- rest\\n"', isWhole: true });
    expect(call({ "a: 1, b": 2 }).text).toBe('"a: 1, b": 2');
    expect(call(parseJson('{"n": 12345678901234567890}')).text).toBe("n: 12345678901234567890");
  });

  it.each<[string, Json, JsonObject]>([
    ["a long text", { a: "x".repeat(200) }, {}],
    ["a long list", { a: Array.from({ length: 200 }, () => 1) }, {}],
    ["what cannot be seen", { a: "x\u202ey" }, {}],
    ["what cannot be seen, deep inside", { a: [{ b: "x\u200by" }] }, {}],
    ["a name that cannot be seen", { "a\u200b": 1 }, {}],
    ["a gap", { a: `x${" ".repeat(60)}y` }, {}],
    ["letters that turn the line round", { a: "שלום" }, {}],
    ["many names", Object.fromEntries(Array.from({ length: 41 }, (_, at) => [String.fromCharCode(97 + at), 1])), {}],
    ["a long list instead of an object", Array.from({ length: 200 }, () => 1), {}],
    ["something long that is sent along", { a: 1 }, { _meta: { x: "x".repeat(200) } }],
  ])("is not whole with %s", (_what, given, beside) => {
    expect(call(given, beside).isWhole).toBe(false);
  });

  it("still says something of what is too long for it", () => {
    expect(call("x".repeat(5_000)).text).toMatch(/^xxx.+…/);
    expect(call(Array.from({ length: 5_000 }, () => 1)).text).toBe("[5,000]");
    expect(call({ a: "x".repeat(5_000), b: [1, 2] }).text).toMatch(/^a: x+…x+, b: \[1,2\]$/);
    expect(call({ a: "x".repeat(100) }, { _meta: { y: "x".repeat(100) } }).text).toContain("; with _meta: {y}");
  });

  it("is whole on a card only where the title beside it is", () => {
    const params = { name: "run", arguments: { a: 1 } };
    const card = (more: object): boolean => cardLine({ method: "tools/call", params, to: ["files"], ...more }).isWhole;
    expect(card({})).toBe(true);
    expect(card({ params: { ...params, name: "x".repeat(121) } })).toBe(false);
    expect(card({ params: { ...params, name: "x\u200b" } })).toBe(false);
    expect(card({ to: ["a", "b", "c", "d", "e", "f"] })).toBe(false);
  });

  it("takes no longer for a megabyte", () => {
    const began = performance.now();
    for (let times = 0; times < 50; times += 1) call({ a: "x".repeat(1_000_000), b: Array.from({ length: 10_000 }, () => "y") });
    expect(performance.now() - began).toBeLessThan(500);
  });
});

describe("an answer", () => {
  it("is a failure if it is an error, unless somebody only probed for an optional method", () => {
    expect(isFailure({ error: { code: -32602, message: "no such tool" } })).toBe(true);
    expect(isFailure({ result: { isError: true } })).toBe(true);
    expect(isFailure({ result: {} })).toBe(false);
    expect(isFailure({ error: { code: -32601, message: "unknown method prompts/list" } })).toBe(false);
  });
});
