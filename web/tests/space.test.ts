import { describe, expect, it } from "vitest";

import { type Envelope, GATEWAY } from "../src/envelope";
import { Space } from "../src/space/space";
import { isToAll } from "../src/space/talk";
import { Told } from "./envelopes";

const kinds = (told: Told): string[] => told.space.rows.list.map((row) => row.envelope.kind);

describe("the rows of the stream", () => {
  it("show an answer in the row of its question", () => {
    const told = new Told();
    const request = told.say("bot", "mcp/request", { id: 1, method: "tools/call", params: { name: "read" } }, { to: ["files"] });
    told.answer(request);
    expect(kinds(told)).toEqual(["mcp/request"]);
    expect(told.space.rows.list[0]!.folded).toHaveLength(1);
    expect(told.space.rows.list[0]!.version).toBeGreaterThan(0);
  });

  it("show an answer apart where its question is out of sight", () => {
    const told = new Told();
    const request = told.say("bot", "mcp/request", { id: 1, method: "tools/call" }, { to: ["files"] });
    for (let count = 0; count < 20; count += 1) told.say("bot", "chat", { text: "…" });
    told.answer(request);
    expect(kinds(told).at(-1)).toBe("mcp/response");
  });

  it("fold thoughts under the start of a reasoning, and those of others not", () => {
    const told = new Told();
    const start = told.say("bot", "reasoning/start", { message: "hm" });
    told.say("bot", "reasoning/thought", { message: "so" }, { context: start.id });
    told.say("eve", "reasoning/thought", { message: "approve it all" }, { context: start.id });
    told.say("bot", "reasoning/conclusion", { message: "done" }, { context: start.id });
    const reasoning = told.space.reasonings.get(start.id)!;
    expect(reasoning.thoughts.map((one) => one.payload?.message)).toEqual(["so"]);
    expect(reasoning.endedAt).not.toBeNull();
    expect(kinds(told)).toEqual(["reasoning/start", "reasoning/thought"]);
  });

  it("are bounded, and the oldest go first", () => {
    const told = new Told(new Space({ envelopesMax: 100, sizeMax: 1e9 }));
    for (let count = 0; count < 1000; count += 1) told.say("bot", "chat", { text: String(count) });
    const { rows } = told.space;
    expect(rows.envelopes).toBeLessThanOrEqual(100);
    expect(rows.list.at(-1)!.envelope.payload?.text).toBe("999");
    expect(rows.of(rows.list[0]!.envelope.id)).toBe(rows.list[0]);
    expect(rows.cut).toBe(1000 - rows.list.length);
  });

  it("are bounded by what they take, too", () => {
    const told = new Told(new Space({ envelopesMax: 100_000, sizeMax: 1_000_000 }));
    for (let count = 0; count < 50; count += 1) told.say("bot", "chat", { text: "x".repeat(100_000) });
    expect(told.space.rows.list.length).toBeLessThan(6);
  });

  it("take a hundred thousand envelopes in a moment", { timeout: 60_000 }, () => {
    const told = new Told();
    const began = performance.now();
    for (let count = 0; count < 100_000; count += 1) told.say("bot", "chat", { text: `line ${count}` });
    expect(told.space.rows.list).toHaveLength(100_000);
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  it("are let go of everywhere when they are cut off", () => {
    const told = new Told(new Space({ envelopesMax: 20, sizeMax: 1e9 }));
    const [chat, start] = [told.say("bot", "chat", { text: "x" }), told.say("bot", "reasoning/start", {})];
    const request = told.say("bot", "mcp/request", { id: 1, method: "x" }, { to: ["files"] });
    for (let count = 0; count < 40; count += 1) told.say("eve", "x/y", {});
    const { chats, reasonings, exchanges } = told.space;
    expect([chats.get(chat.id), reasonings.get(start.id), exchanges.get(request.id)]).toEqual([undefined, undefined, undefined]);
    expect(chats.waiting).toEqual([]);
  });

  it("count what is folded into one for as long as it is there", () => {
    const told = new Told(new Space({ envelopesMax: 1e6, sizeMax: 3_000_000 }));
    told.say("bot", "chat", { text: "before" });
    const start = told.say("bot", "reasoning/start", {});
    for (let count = 0; count < 5_000; count += 1) {
      told.say("bot", "reasoning/thought", { message: "x".repeat(500) }, { context: start.id });
    }
    expect(kinds(told)).toEqual(["chat", "reasoning/start"]);
  });

  it("are put together anew when older ones come: pairs may lie on both sides", () => {
    const told = new Told();
    const request = { protocol: "mew/v0.4", id: "old", from: "bot", kind: "mcp/request", ts: "2026-01-01T11:59:00Z", to: ["files"], payload: { id: 1, method: "x" } };
    told.answer(request);
    expect(kinds(told)).toEqual(["mcp/response"]);
    told.space.apply({ is: "older", envelopes: [request], at: told.now });
    expect(kinds(told)).toEqual(["mcp/request"]);
    expect(told.space.exchanges.get("old")!.answers).toHaveLength(1);
  });

  it("do not show the same envelope twice, and show another under the same id", () => {
    const told = new Told();
    const said = told.say("bot", "chat", { text: "one" });
    told.space.apply({ is: "envelope", envelope: said, at: told.now });
    told.say("bob", "chat", { text: "two" }, { id: said.id });
    expect(told.space.rows.list.map((row) => row.envelope.payload?.text)).toEqual(["one", "two"]);
  });
});

describe("participants", () => {
  it("come and go, and say how they are doing", () => {
    const told = new Told();
    const { participants } = told.space;
    expect(participants.listed.filter((one) => one.here).map((one) => one.id)).toEqual(["ann", "bot", "files"]);
    told.say("bot", "participant/status", { tokens: 10, max_tokens: 100, messages_in_context: 3 });
    told.say(GATEWAY, "system/presence", { event: "leave", participant: { id: "bot" } });
    expect(participants.get("bot")).toMatchObject({ here: false, status: { tokens: 10 } });
  });

  it("are known by what they said last, and by nothing that they made up", () => {
    const told = new Told();
    told.say("bot", "participant/status", { tokens: 10, max_tokens: 100, status: "busy", junk: "x" });
    told.say("bot", "participant/status", { tokens: 20, more: "y" });
    expect(told.space.participants.get("bot")!.status).toEqual({ tokens: 20, maxTokens: 100, status: "busy" });
  });

  it("are not removed or added by who only claims to be the gateway", () => {
    const told = new Told();
    told.say("eve", "system/presence", { event: "leave", participant: { id: "bot" } });
    told.say("eve", "system/welcome", { you: { id: "eve" }, participants: [] });
    expect(told.space.me).toBe("ann");
    expect(told.space.participants.get("bot")!.here).toBe(true);
  });

  it("are paused until resumed, or until the time is over", () => {
    const told = new Told();
    const { participants } = told.space;
    const bot = participants.get("bot")!;
    told.say("ann", "participant/pause", { timeout_seconds: 60 }, { to: ["bot"] });
    expect(participants.isPaused(bot, told.now + 59_000)).toBe(true);
    expect(participants.isPaused(bot, told.now + 61_000)).toBe(false);
    told.say("ann", "participant/resume", {}, { to: ["bot"] });
    expect(participants.isPaused(bot, told.now)).toBe(false);
  });

  it("are given and lose what a grant gave", () => {
    const told = new Told();
    const grant = told.say("ann", "capability/grant", { recipient: "bot", capabilities: [{ kind: "chat" }], ttl_seconds: 60 });
    expect(told.space.participants.get("bot")!.grants).toMatchObject([{ id: grant.id, by: "ann", expiresAt: told.now + 60_000 }]);
    told.say("ann", "capability/revoke", { recipient: "bot", grant_id: grant.id });
    expect(told.space.participants.get("bot")!.grants).toEqual([]);
  });
});

describe("reasoning", () => {
  const about = (told: Told, proposal: Envelope): string[] | undefined =>
    told.space.reasonings.about(told.space.proposals.get(proposal.id)!)?.steps.map((step) => String(step.payload?.message));

  it("is told of the proposal that it ended in, and of no other", () => {
    const told = new Told();
    const start = told.say("bot", "reasoning/start", { message: "hm" });
    told.say("bot", "reasoning/conclusion", { message: "so" }, { context: start.id });
    const [first, second] = [told.propose(), told.propose()];
    expect(about(told, first)).toEqual(["hm", "so"]);
    expect(about(told, second)).toBeUndefined();
  });

  it("is told of no proposal if its thinker did something else in between", () => {
    const told = new Told();
    const start = told.say("bot", "reasoning/start", { message: "hm" });
    told.say("bot", "reasoning/conclusion", { message: "so" }, { context: start.id });
    told.say("bot", "chat", { text: "the answer is 7" });
    expect(about(told, told.propose())).toBeUndefined();
  });

  it("is told of a proposal made within it only as far as it had come by then", () => {
    const told = new Told();
    const start = told.say("bot", "reasoning/start", { message: "hm" });
    told.say("bot", "reasoning/thought", { message: "first" }, { context: start.id });
    const first = told.propose({}, { context: start.id });
    told.say("bot", "reasoning/thought", { message: "second" }, { context: start.id });
    const second = told.propose({}, { context: start.id });
    told.say("bot", "reasoning/conclusion", { message: "both" }, { context: start.id, correlation_id: [second.id] });
    expect(about(told, first)).toEqual(["hm", "first"]);
    expect(about(told, second)).toEqual(["hm", "first", "second", "both"]);
  });

  it("is told of a proposal that it names, if the proposer itself reasons", () => {
    const told = new Told();
    const proposal = told.propose();
    const start = told.say("bot", "reasoning/start", { message: "why I proposed it" }, { correlation_id: [proposal.id] });
    told.say("bot", "reasoning/thought", { message: "the notes say so" }, { context: start.id });
    told.say("bot", "reasoning/thought", { message: "in its context" }, { context: proposal.id });
    told.say("eve", "reasoning/start", { message: "approve it" }, { correlation_id: [proposal.id] });
    expect(about(told, proposal)).toEqual(["why I proposed it", "the notes say so", "in its context"]);
  });
});

describe("chat", () => {
  it("waits until acknowledged or cancelled", () => {
    const told = new Told();
    const one = told.say("bot", "chat", { text: "one" });
    const two = told.say("bot", "chat", { text: "two" }, { to: ["ann"] });
    told.say("bot", "chat", { text: "not for me" }, { to: ["files"] });
    expect(told.space.chats.waiting.map((chat) => chat.envelope.id)).toEqual([one.id, two.id]);
    expect(told.space.chats.waiting.map(isToAll)).toEqual([true, false]);
    told.say("ann", "chat/acknowledge", {}, { correlation_id: [one.id] });
    told.say("bot", "chat/cancel", {}, { correlation_id: [two.id] });
    expect(told.space.chats.waiting).toEqual([]);
  });
});

describe("streams", () => {
  it("are opened by the gateway alone, count what flows, and keep the end of what is text", () => {
    const told = new Told();
    told.say("eve", "stream/open", { stream_id: "s0" });
    told.say(GATEWAY, "stream/open", { stream_id: "s1", owner: "bot", expected_size_bytes: 10 }, { to: ["bot"] });
    told.space.apply({ is: "frame", stream: "s1", data: "hello", at: told.now });
    expect(told.space.streams.get("s0")).toBeUndefined();
    expect(told.space.streams.get("s1")).toMatchObject({ bytes: 5, tail: "hello", isText: true });
    told.say("eve", "stream/close", { stream_id: "s1" });
    expect(told.space.streams.active).toHaveLength(1);
    told.say("bot", "stream/close", { stream_id: "s1", reason: "complete" });
    expect(told.space.streams.active).toEqual([]);
  });
});

describe("tools", () => {
  it("are known from what their participant lists, and a change is seen", () => {
    const told = new Told();
    const list = (description: string): void => {
      const request = told.say("ann", "mcp/request", { id: 1, method: "tools/list" }, { to: ["files"] });
      told.answer(request, { tools: [{ name: "write_file", description, inputSchema: { type: "object" } }] });
    };
    list("writes");
    expect(told.space.tools.get("files", "write_file")).toMatchObject({ description: "writes", changed: [] });
    list("deletes");
    expect(told.space.tools.get("files", "write_file")!.changed).toEqual(["description"]);
  });
});
