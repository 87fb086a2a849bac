import { describe, expect, it } from "vitest";

import { GATEWAY } from "../src/envelope";
import type { Proposal as Listed } from "../src/http";
import { precedents } from "../src/space/precedents";
import { statusOf } from "../src/space/proposals";
import { Told } from "./envelopes";

const LISTED: Listed = {
  id: "old", proposer: "bot", at: "2026-01-01T11:00:00Z", status: "open", to: ["files"], method: "tools/call", params: { name: "read" },
  context: null, why: "to know", expires_at: "2026-01-01T13:00:00Z", preferred: [], exclusive: false,
  rejections: [{ id: "n", at: "2026-01-01T11:00:01Z", by: "bob", reason: "busy", message: "later", explanations: [] }],
  fulfilments: [], unrelated: [], withdrawn: null,
};
const SENT = {
  id: "r", at: "2026-01-01T12:00:09Z", by: "bob", target: "files", method: "tools/call", params: { name: "read" }, edited: true,
  differences: [{ path: "$.params.arguments.path", old: "a", new: "b" }], via: "cli", late: false, response: null,
};

describe("a proposal", () => {
  it("waits for whoever may decide it, until the request is sent", () => {
    const told = new Told();
    const proposal = told.propose();
    expect(told.waiting).toEqual([proposal.id]);
    told.fulfil(proposal);
    expect(told.waiting).toEqual([]);
  });

  it("keeps waiting when an unrelated request names it", () => {
    const told = new Told();
    const proposal = told.propose();
    told.fulfil(proposal, "eve", { method: "tools/call", params: { name: "read_file", arguments: { path: "a.txt" } } });
    told.say("eve", "mcp/request", { jsonrpc: "2.0", id: 1, ...proposal.payload }, { to: ["eve"], correlation_id: [proposal.id] });
    expect(told.waiting).toEqual([proposal.id]);
    expect(told.space.proposals.get(proposal.id)!.unrelated).toMatchObject([{ by: "eve", tool: "read_file" }, { by: "eve", to: ["eve"] }]);
  });

  it("tells in what an approval differs from it", () => {
    const told = new Told();
    const proposal = told.propose({ path: "a.txt", content: "x" });
    told.fulfil(proposal, "ann", { method: "tools/call", params: { name: "write_file", arguments: { path: "b.txt", content: "x" } } });
    const [fulfilment] = told.space.proposals.get(proposal.id)!.fulfilments;
    expect(fulfilment!.changes).toEqual([{ path: "params.arguments.path", old: "a.txt", new: "b.txt" }]);
  });

  it("no longer waits once it has expired", () => {
    const told = new Told();
    const payload = { method: "tools/call", params: { name: "write_file" }, expires_at: new Date(told.now + 60_000).toISOString() };
    const proposal = told.say("bot", "mcp/proposal", payload, { to: ["files"] });
    expect(told.waiting).toEqual([proposal.id]);
    expect(told.space.waiting(told.now + 60_000)).toEqual([]);
    expect(statusOf(told.space.proposals.get(proposal.id)!, told.now + 60_000)).toBe("expired");
  });

  it("is listed last once its proposer has left", () => {
    const told = new Told();
    told.welcome([{ kind: "*" }], ["bot", "files", "kit"]);
    const first = told.propose();
    const second = told.propose({}, { from: "kit" });
    told.say(GATEWAY, "system/presence", { event: "leave", participant: { id: "bot" } });
    expect(told.space.items(told.now).map(({ id }) => id)).toEqual([second.id, first.id]);
    expect(told.space.hasLeft(told.space.proposals.get(first.id)!)).toBe(true);
    told.say(GATEWAY, "system/presence", { event: "join", participant: { id: "bot" } });
    expect(told.space.items(told.now).map(({ id }) => id)).toEqual([first.id, second.id]);
  });

  it("waits only for those who may make the request or reject it", () => {
    const told = new Told();
    told.propose();
    told.welcome([{ kind: "chat" }], ["bot", "files"]);
    expect(told.waiting).toEqual([]);
    told.welcome([{ kind: "mcp/request", to: "files", payload: { method: "tools/call", params: { name: "write_*" } } }], ["bot", "files"]);
    expect(told.waiting).toHaveLength(1);
  });

  it("shows how the same was decided before, apart from what only looks like it", () => {
    const told = new Told();
    told.answer(told.fulfil(told.propose({ path: "1" })));
    const second = told.propose({ path: "2" });
    told.say("ann", "mcp/reject", {}, { correlation_id: [second.id] });
    told.answer(told.fulfil(told.say("eve", "mcp/proposal", second.payload, { to: ["files"] })));
    const third = told.space.proposals.get(told.propose({ path: "1" }).id)!;
    const before = precedents(told.space.proposals.all.values(), third, told.now);
    expect(before.map(({ proposal, likeness }) => [likeness, proposal.params.arguments])).toEqual([
      ["same", { path: "1" }],
      ["own", { path: "2" }],
      ["others", { path: "2" }],
    ]);
  });
});

describe("the gateway's list of proposals", () => {
  it("brings open ones that are older than the history", () => {
    const told = new Told();
    told.space.apply({ is: "proposals", listed: [LISTED] });
    told.space.apply({ is: "proposals", listed: [LISTED] });
    expect(told.waiting).toEqual(["old"]);
    const known = told.space.proposals.get("old")!;
    expect(known).toMatchObject({ why: "to know", expiresAt: Date.parse("2026-01-01T13:00:00Z") });
    expect(known.rejections).toMatchObject([{ by: "bob", reason: "busy", message: "later" }]);
    told.fulfil({ protocol: "", id: "old", from: "bot", kind: "mcp/proposal", to: ["files"], payload: { method: "tools/call", params: { name: "read" } } });
    expect(told.waiting).toEqual([]);
  });

  it("closes what was decided during a gap", () => {
    const told = new Told();
    const { id } = told.propose();
    const approved: Listed = { ...LISTED, id, status: "approved", fulfilments: [SENT] };
    told.space.apply({ is: "proposals", listed: [approved] });
    told.space.apply({ is: "proposals", listed: [approved] });
    const known = told.space.proposals.get(id)!;
    expect(told.waiting).toEqual([]);
    expect(known.fulfilments).toMatchObject([{ by: "bob", to: ["files"], via: "cli", changes: [{ path: "params.arguments.path" }] }]);
    const response = { id: "a", at: "2026-01-01T12:00:10Z", by: "files", result: { isError: true, content: [] } };
    told.space.apply({ is: "proposals", listed: [{ ...approved, status: "failed", fulfilments: [{ ...SENT, response }] }] });
    expect(statusOf(known, told.now)).toBe("failed");
  });

  it("does not bring back to life what was answered since, and lets its answer arrive", () => {
    const told = new Told();
    told.space.apply({ is: "proposals", listed: [{ ...LISTED, status: "approved", fulfilments: [SENT] }] });
    told.answer({ protocol: "", id: "r", from: "bob", kind: "mcp/request" });
    expect(statusOf(told.space.proposals.get("old")!, told.now)).toBe("fulfilled");
  });
});

describe("what is kept of proposals", () => {
  it("is bounded by size, and one that waits is not dropped for another's", () => {
    const told = new Told();
    const proposal = told.propose();
    const text = "x".repeat(900_000);
    for (let count = 0; count < 100; count += 1) told.say("eve", "mcp/proposal", { method: "x", params: { text } });
    expect(told.space.proposals.all.size).toBeLessThan(70);
    expect(told.space.proposals.get(proposal.id)).toBeDefined();
  });

  it("is bounded in number, and one that waits is not dropped for another's", () => {
    const told = new Told();
    const proposal = told.propose();
    for (let count = 0; count < 6_000; count += 1) told.say("eve", "mcp/proposal", { method: "x" }, { to: ["files"] });
    expect(told.space.proposals.all.size).toBeLessThan(4_300);
    expect(told.space.proposals.get(proposal.id)).toBeDefined();
  });
});
