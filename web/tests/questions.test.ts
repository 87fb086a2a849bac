import { describe, expect, it } from "vitest";

import type { Envelope } from "../src/envelope";
import type { JsonObject } from "../src/json";
import { isAsked } from "../src/space/space";
import { Told } from "./envelopes";

const FORM = { message: "Which branch?", requestedSchema: { type: "object", properties: { branch: { type: "string" } } } };

function ask(told: Told, params: JsonObject = FORM, more: Partial<Envelope> = {}): Envelope {
  return told.say("files", "mcp/request", { jsonrpc: "2.0", id: 7, method: "elicitation/create", params }, { to: ["ann"], ...more });
}

function respond(told: Told, question: Envelope, by: string, payload: JsonObject): Envelope {
  return told.say(by, "mcp/response", { jsonrpc: "2.0", id: 7, ...payload }, { to: ["files"], correlation_id: [question.id] });
}

describe("a question", () => {
  it("waits for whom it was asked, beside the proposals, the oldest first", () => {
    const told = new Told();
    const first = told.propose();
    const question = ask(told, FORM, { correlation_id: ["a call"], context: "c" });
    const last = told.propose();
    expect(told.space.items(told.now).map((item) => item.id)).toEqual([first.id, question.id, last.id]);
    expect(told.space.items(told.now).map(isAsked)).toEqual([false, true, false]);
    expect(told.space.questions.get(question.id)).toMatchObject({
      asker: "files", rpcId: 7, message: "Which branch?", mode: "form", schema: FORM.requestedSchema, about: ["a call"], context: "c", end: null,
    });
  });

  it("does not wait for others, nor where it may not be answered", () => {
    const told = new Told();
    ask(told, FORM, { to: ["bot"] });
    expect(told.space.asked).toEqual([]);
    ask(told);
    told.welcome([{ kind: "chat" }], ["bot", "files"]);
    expect(told.space.asked).toEqual([]);
  });

  it("is no longer open once it was answered, be it by another session of mine", () => {
    const told = new Told();
    const question = ask(told);
    const answer = respond(told, question, "ann", { result: { action: "accept", content: { branch: "main" } } });
    expect(told.space.asked).toEqual([]);
    expect(told.space.questions.get(question.id)!.end).toMatchObject({ is: "answered", by: "ann", id: answer.id, action: "accept" });
  });

  it("takes the first answer of those who were asked, and of nobody else", () => {
    const told = new Told();
    const question = ask(told, FORM, { to: ["ann", "bob"] });
    respond(told, question, "bot", { result: { action: "accept" } });
    respond(told, question, "bob", { error: { code: -32601, message: "no such method" } });
    expect(told.space.asked).toHaveLength(1);
    respond(told, question, "bob", { result: { action: "decline" } });
    respond(told, question, "ann", { result: { action: "accept" } });
    expect(told.space.questions.get(question.id)!.end).toMatchObject({ by: "bob", action: "decline" });
  });

  it("is taken back by its asker, by either of its names, and by nobody else", () => {
    const told = new Told();
    const [one, other] = [ask(told), ask(told, { mode: "url", url: "https://example.org/", message: "Look" })];
    const cancel = (from: string, more: Partial<Envelope>, params: JsonObject = {}): Envelope =>
      told.say(from, "mcp/request", { jsonrpc: "2.0", method: "notifications/cancelled", params }, { to: ["ann"], ...more });
    cancel("bot", { correlation_id: [one.id] });
    expect(told.space.asked).toHaveLength(2);
    cancel("files", { correlation_id: [one.id] });
    expect(told.space.asked.map(({ id, mode, url }) => [id, mode, url])).toEqual([[other.id, "url", "https://example.org/"]]);
    cancel("files", {}, { requestId: 7 });
    expect(told.space.asked).toEqual([]);
  });

  it("is found where it is older than what is shown, and stays while older ones come", () => {
    const told = new Told();
    const question: Envelope = { ...ask(new Told()), id: "old", ts: "2026-01-01T11:00:00Z" };
    told.space.apply({ is: "questions", envelopes: [question], at: told.now });
    expect(told.space.asked.map(({ id }) => id)).toEqual(["old"]);
    told.space.apply({ is: "older", envelopes: [{ ...question, id: "older still" }], at: told.now });
    expect(told.space.asked.map(({ id }) => id).sort()).toEqual(["old", "older still"]);
  });

  it("of many does not drown that of another", () => {
    const told = new Told();
    const mine = told.say("bot", "mcp/request", { jsonrpc: "2.0", id: 1, method: "elicitation/create", params: {} }, { to: ["ann"] });
    for (let n = 0; n < 1_200; n += 1) ask(told);
    expect(told.space.asked[0]!.id).toBe(mine.id);
    expect(told.space.asked.length).toBeLessThanOrEqual(1_100);
  });
});
