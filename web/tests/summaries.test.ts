import { describe, expect, it } from "vitest";

import type { JsonObject } from "../src/json";
import { answerText, argumentsLine, lineOf } from "../src/components/summaries";

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
      "takes its proposal of write_file (path: a.txt) back: no longer needed",
    );
  });

  it("says what is taken away, and counts as people do", () => {
    expect(line("capability/revoke", { recipient: "agent", grant_id: "g1" })).toBe("takes back a grant from agent");
    expect(line("participant/status", { tokens: 1, messages_in_context: 1 })).toBe("says how it is doing: 1 token, 1 message in mind");
    expect(line("participant/status", { tokens: 1e308 })).toBe("says how it is doing: 1.00e308 tokens");
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
