import { describe, expect, it } from "vitest";

import { precedents } from "../src/space/precedents";
import { statusOf } from "../src/space/proposals";
import { Told } from "./envelopes";

describe("the life of a proposal", () => {
  it("waits for who may decide it, until the request is made", () => {
    const told = new Told();
    const proposal = told.propose();
    expect(told.space.waiting.map((one) => one.id)).toEqual([proposal.id]);
    const request = told.fulfil(proposal);
    const kept = told.space.proposals.get(proposal.id)!;
    expect(statusOf(kept)).toBe("approved");
    expect(told.space.waiting).toEqual([]);
    told.answer(request);
    expect(statusOf(kept)).toBe("fulfilled");
    expect(kept.fulfilments[0]).toMatchObject({ by: "ann", edited: false, answer: { by: "files", failed: false } });
  });

  it("is marked as edited where what ran is not what was proposed", () => {
    const told = new Told();
    const proposal = told.propose({ path: "a.txt", content: "x" });
    told.fulfil(proposal, "ann", { method: "tools/call", params: { name: "write_file", arguments: { path: "b.txt", content: "x" } } });
    const [fulfilment] = told.space.proposals.get(proposal.id)!.fulfilments;
    expect(fulfilment!.edited).toBe(true);
    expect(fulfilment!.changes).toEqual([{ path: "params.arguments.path", old: "a.txt", new: "b.txt" }]);
  });

  it("is marked as edited where it was sent to somebody else", () => {
    const told = new Told();
    const proposal = told.propose();
    told.say("ann", "mcp/request", { jsonrpc: "2.0", id: 1, ...proposal.payload }, { to: ["other"], correlation_id: [proposal.id] });
    expect(told.space.proposals.get(proposal.id)!.fulfilments[0]!.edited).toBe(true);
  });

  it("stays open for others after a rejection, and is not shown again to who rejected it", () => {
    const told = new Told();
    const proposal = told.propose();
    const no = told.say("ann", "mcp/reject", { reason: "unsafe" }, { to: ["bot"], correlation_id: [proposal.id] });
    told.say("ann", "chat", { text: "not there, please" }, { to: ["bot"], correlation_id: [no.id] });
    const kept = told.space.proposals.get(proposal.id)!;
    expect(statusOf(kept)).toBe("open");
    expect(kept.rejections).toMatchObject([{ by: "ann", reason: "unsafe", words: ["not there, please"] }]);
    expect(told.space.waiting).toEqual([]);
    told.say("bot", "mcp/withdraw", { reason: "other" }, { correlation_id: [proposal.id] });
    expect(statusOf(kept)).toBe("rejected");
  });

  it("is withdrawn by nobody but its proposer", () => {
    const told = new Told();
    const proposal = told.propose();
    told.say("eve", "mcp/withdraw", {}, { correlation_id: [proposal.id] });
    expect(told.space.waiting).toHaveLength(1);
    told.say("bot", "mcp/withdraw", { reason: "timeout" }, { correlation_id: [proposal.id] });
    expect(statusOf(told.space.proposals.get(proposal.id)!)).toBe("timed_out");
  });

  it("takes an answer from whom it was asked of alone", () => {
    const told = new Told();
    const request = told.fulfil(told.propose());
    told.say("eve", "mcp/response", { result: {} }, { correlation_id: [request.id] });
    expect(told.space.exchanges.get(request.id)!.answers).toEqual([]);
    told.answer(request, { isError: true, content: [] });
    expect([...told.space.proposals.all.values()].map(statusOf)).toEqual(["failed"]);
  });

  it("does not wait for its own proposer, nor for whom it is not meant", () => {
    const told = new Told();
    told.say("ann", "mcp/proposal", { method: "tools/call", params: { name: "x" } }, { to: ["files"] });
    told.say("bot", "mcp/proposal", { method: "tools/call", params: { name: "x" }, targeting: { preferred: ["bob"], exclusive: true } }, { to: ["files"] });
    expect(told.space.waiting).toEqual([]);
  });

  it("waits only for who may make the request or reject it", () => {
    const told = new Told();
    told.propose();
    told.welcome([{ kind: "chat" }], ["bot", "files"]);
    expect(told.space.waiting).toEqual([]);
    told.welcome([{ kind: "mcp/request", to: "files", payload: { method: "tools/call", params: { name: "write_*" } } }], ["bot", "files"]);
    expect(told.space.waiting).toHaveLength(1);
  });

  it("shows how the same was decided before, and what only looks like it apart", () => {
    const told = new Told();
    told.answer(told.fulfil(told.propose({ path: "1" })));
    const second = told.propose({ path: "2" });
    told.say("ann", "mcp/reject", {}, { correlation_id: [second.id] });
    told.answer(told.fulfil(told.say("eve", "mcp/proposal", second.payload, { to: ["files"] })));
    const third = told.space.proposals.get(told.propose({ path: "1" }).id)!;
    expect(precedents(told.space.proposals.all.values(), third).map(({ proposal, likeness }) => [likeness, proposal.params.arguments])).toEqual([
      ["same", { path: "1" }],
      ["own", { path: "2" }],
      ["others", { path: "2" }],
    ]);
  });

  it("knows of open ones that are older than the history", () => {
    const told = new Told();
    const listed = { id: "old", proposer: "bot", at: "2026-01-01T11:00:00Z", status: "open" as const, to: ["files"], fulfilments: [], rejections: [], withdrawals: [], method: "tools/call", params: { name: "read" } };
    told.space.apply({ is: "proposals", listed: [listed] });
    told.space.apply({ is: "proposals", listed: [listed] });
    expect(told.space.waiting.map((one) => one.id)).toEqual(["old"]);
    told.fulfil({ protocol: "", id: "old", from: "bot", kind: "mcp/proposal", to: ["files"], payload: { method: "tools/call", params: { name: "read" } } });
    expect(told.space.waiting).toEqual([]);
  });

  it("is closed by what was missed, and cannot be decided twice", () => {
    const told = new Told();
    const { id } = told.propose();
    const listed = { id, proposer: "bot", at: "2026-01-01T12:00:00Z", to: ["files"], rejections: [], withdrawals: [] };
    const fulfilled = { ...listed, status: "fulfilled" as const, fulfilments: [{ id: "r", by: "bob" }] };
    told.space.apply({ is: "proposals", listed: [fulfilled] });
    told.space.apply({ is: "proposals", listed: [fulfilled] });
    expect(told.space.waiting).toEqual([]);
    expect(told.space.proposals.get(id)!.fulfilments).toMatchObject([{ id: "r", by: "bob", edited: null }]);
    told.answer({ protocol: "", id: "r", from: "bob", kind: "mcp/request" });
    expect(statusOf(told.space.proposals.get(id)!)).toBe("fulfilled");
  });

  it("does not keep megabytes of another's, and is kept while it waits", () => {
    const told = new Told();
    const proposal = told.propose();
    const text = "x".repeat(900_000);
    for (let count = 0; count < 100; count += 1) told.say("eve", "mcp/proposal", { method: "x", params: { text } });
    expect(told.space.proposals.all.size).toBeLessThan(70);
    expect(told.space.proposals.get(proposal.id)).toBeDefined();
  });

  it("is not drowned by another's", () => {
    const told = new Told();
    const proposal = told.propose();
    for (let count = 0; count < 6_000; count += 1) told.say("eve", "mcp/proposal", { method: "x" }, { to: ["files"] });
    expect(told.space.proposals.all.size).toBeLessThan(4_300);
    expect(told.space.proposals.get(proposal.id)).toBeDefined();
  });
});
