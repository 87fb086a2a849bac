import { describe, expect, it } from "vitest";

import type { Envelope } from "../src/envelope";
import { Past } from "../src/space/past";

function chats(from: number, to: number): Envelope[] {
  return Array.from({ length: to - from }, (_, at) => chat(from + at));
}

function chat(n: number): Envelope {
  const ts = new Date(Date.parse("2026-01-01T12:00:00Z") + n * 1000).toISOString();
  return { protocol: "mew/v0.4", id: `c${n}`, from: "bot", kind: "chat", ts, payload: { text: `${n}` } };
}

function span(past: Past): [first: string, last: string, count: number] {
  const rows = past.space.rows.list;
  return [rows[0]!.envelope.id, rows.at(-1)!.envelope.id, rows.length];
}

describe("a part of the history", () => {
  it("grows in both directions, and knows where each goes on", () => {
    let past = new Past("ann", chats(50, 60), "b50", "a59");
    past = past.earlier({ envelopes: chats(40, 50), next: "b40" });
    past = past.later({ envelopes: chats(60, 70), next: null });
    expect(span(past)).toEqual(["c40", "c69", 30]);
    expect([past.older, past.newer]).toEqual(["b40", null]);
  });

  it("is no longer than it may be: what is dropped at one end can be asked for again", () => {
    let past = new Past("ann", chats(50, 60), "b50", null, 20);
    past = past.earlier({ envelopes: chats(40, 50), next: "b40" }).earlier({ envelopes: chats(30, 40), next: null });
    expect(span(past)).toEqual(["c30", "c49", 20]);
    expect([past.older, past.newer]).toEqual([null, "c49"]);
    past = past.later({ envelopes: chats(50, 60), next: null });
    expect(span(past)).toEqual(["c40", "c59", 20]);
    expect([past.older, past.newer]).toEqual(["c40", null]);
  });

  it("shows nothing twice, and all of an id that an old client used again", () => {
    const again = { ...chat(3), ts: "2026-01-02T12:00:00Z" };
    const past = new Past("ann", chats(0, 5), null, "x").later({ envelopes: [...chats(4, 6), again], next: null });
    expect(past.envelopes.map(({ id }) => id)).toEqual(["c0", "c1", "c2", "c3", "c4", "c5", "c3"]);
  });

  it("pairs what lies on both sides of where a page ended", () => {
    const request: Envelope = { ...chat(1), kind: "mcp/request", to: ["files"], payload: { jsonrpc: "2.0", id: 1, method: "tools/list" } };
    const answer: Envelope = { ...chat(2), from: "files", kind: "mcp/response", correlation_id: ["c1"], payload: { jsonrpc: "2.0", id: 1, result: {} } };
    const past = new Past("ann", [answer], "c2", null);
    expect(past.space.rows.list).toHaveLength(1);
    const whole = past.earlier({ envelopes: [request], next: null });
    expect(whole.space.rows.list.map((row) => [row.envelope.id, row.folded.length])).toEqual([["c1", 1]]);
  });
});
