import { describe, expect, it } from "vitest";

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

  it("shows how the same was decided before", () => {
    const told = new Told();
    told.answer(told.fulfil(told.propose({ path: "1" })));
    const second = told.propose({ path: "2" });
    told.say("ann", "mcp/reject", {}, { correlation_id: [second.id] });
    const third = told.space.proposals.get(told.propose({ path: "3" }).id)!;
    expect(told.space.proposals.precedents(third).map((one) => one.params.arguments)).toEqual([{ path: "2" }, { path: "1" }]);
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

  it("is not drowned by another's", () => {
    const told = new Told();
    const proposal = told.propose();
    for (let count = 0; count < 6_000; count += 1) told.say("eve", "mcp/proposal", { method: "x" }, { to: ["files"] });
    expect(told.space.proposals.all.size).toBeLessThan(4_300);
    expect(told.space.proposals.get(proposal.id)).toBeDefined();
  });
});
