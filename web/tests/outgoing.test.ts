import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Envelope, JsonObject } from "../src/wire";
import { NotSent, Outgoing, Refused } from "../src/outgoing";

let sent: Envelope[] = [];
let outgoing: Outgoing;

beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
  outgoing = new Outgoing((text) => sent.push(JSON.parse(text) as Envelope));
});
afterEach(() => {
  vi.useRealTimers();
});

function refuse(id: string, payload: JsonObject): void {
  const error = { protocol: "mew/v0.4", id: "err", from: "system:gateway", kind: "system/error" };
  outgoing.arrived({ ...error, correlation_id: [id], payload });
}

function last(): Envelope {
  const found = sent.at(-1);
  if (found === undefined) throw new Error("nothing was sent");
  return found;
}

test("what is sent is a whole envelope, and its echo is the answer", async () => {
  outgoing.connected("ann");
  const answer = outgoing.send({ kind: "chat", payload: { text: "hi" } });
  expect(last()).toMatchObject({ protocol: "mew/v0.4", from: "ann", kind: "chat", payload: { text: "hi" } });
  outgoing.arrived(last());
  expect(await answer).toEqual(last());
});

test("without a connection it waits, and goes in order", () => {
  void outgoing.send({ kind: "chat", id: "a" });
  void outgoing.send({ kind: "chat", id: "b" });
  expect(sent).toEqual([]);
  outgoing.connected("ann");
  expect(sent.map((envelope) => [envelope.id, envelope.from])).toEqual([
    ["a", "ann"],
    ["b", "ann"],
  ]);
});

test("what a lost connection swallowed is sent again, and once it was there before is as good as its echo", async () => {
  outgoing.connected("ann");
  const answer = outgoing.send({ kind: "chat", id: "a" });
  outgoing.disconnected();
  outgoing.connected("ann");
  expect(sent.map((envelope) => envelope.id)).toEqual(["a", "a"]);
  refuse("a", { error: "duplicate_id" });
  expect((await answer).id).toBe("a");
});

test("an id that was taken before it was ever sent is refused", async () => {
  outgoing.connected("ann");
  const answer = outgoing.send({ kind: "chat", id: "a" });
  refuse("a", { error: "duplicate_id", message: "taken" });
  await expect(answer).rejects.toThrow("taken");
});

test("a refusal says why", async () => {
  outgoing.connected("ann");
  const answer = outgoing.send({ kind: "chat", id: "a" });
  refuse("a", { error: "capability_violation", message: "you may not" });
  await expect(answer).rejects.toMatchObject({ code: "capability_violation", message: "you may not" });
  await expect(answer).rejects.toBeInstanceOf(Refused);
});

test("too fast means later, not never", () => {
  outgoing.connected("ann");
  void outgoing.send({ kind: "chat", id: "a" });
  refuse("a", { error: "rate_limited", retry_after_s: 2 });
  vi.advanceTimersByTime(1900);
  expect(sent).toHaveLength(1);
  vi.advanceTimersByTime(200);
  expect(sent).toHaveLength(2);
});

test("half a minute later nothing is sent that a person has given up on", async () => {
  const never = outgoing.send({ kind: "chat", id: "a" });
  outgoing.connected("ann");
  outgoing.disconnected();
  const waiting = outgoing.send({ kind: "chat", id: "b" });
  vi.advanceTimersByTime(30_000);
  await expect(never).rejects.toMatchObject({ uncertain: true });
  await expect(waiting).rejects.toMatchObject({ uncertain: false });
  outgoing.connected("ann");
  expect(sent.map((envelope) => envelope.id)).toEqual(["a"]);
});

test("what is no longer wanted when there is a connection again does not leave", async () => {
  let isOpen = true;
  const answer = outgoing.send({ kind: "mcp/request", id: "a" }, () => (isOpen ? "now" : "never"));
  isOpen = false;
  outgoing.connected("ann");
  expect(sent).toEqual([]);
  await expect(answer).rejects.toMatchObject({ uncertain: false });
});

test("its own echo among what was missed is the answer, though it is no longer wanted after that", async () => {
  let isOpen = true;
  outgoing.connected("ann");
  const answer = outgoing.send({ kind: "mcp/request", id: "a" }, () => (isOpen ? "now" : "never"));
  outgoing.disconnected();
  isOpen = false;
  outgoing.arrived(last());
  outgoing.connected("ann");
  expect(sent).toHaveLength(1);
  expect((await answer).id).toBe("a");
});

test("what is to wait for somebody leaves when they come, and once", () => {
  let isHere = false;
  void outgoing.send({ kind: "mcp/request", id: "a" }, () => (isHere ? "now" : "later"));
  outgoing.connected("ann");
  outgoing.reconsider();
  expect(sent).toEqual([]);
  isHere = true;
  outgoing.reconsider();
  outgoing.reconsider();
  expect(sent.map((envelope) => envelope.id)).toEqual(["a"]);
});

test("what waits for somebody who does not come is not sent, and says so", async () => {
  outgoing.connected("ann");
  const answer = outgoing.send({ kind: "mcp/request", id: "a" }, () => "later");
  vi.advanceTimersByTime(30_000);
  await expect(answer).rejects.toMatchObject({ uncertain: false, message: "the participant did not reconnect in time" });
  outgoing.reconsider();
  expect(sent).toEqual([]);
});

test("nobody but the gateway refuses anything", () => {
  outgoing.connected("ann");
  void outgoing.send({ kind: "chat", id: "a" }).catch(() => undefined);
  outgoing.arrived({ ...last(), id: "err", from: "eve", kind: "system/error", correlation_id: ["a"], payload: {} });
  outgoing.disconnected();
  outgoing.connected("ann");
  expect(sent).toHaveLength(2);
});

test("another's envelope with the same id answers nothing", async () => {
  outgoing.connected("ann");
  const answer = outgoing.send({ kind: "chat", id: "a" });
  outgoing.arrived({ ...last(), from: "eve" });
  outgoing.abandon();
  await expect(answer).rejects.toBeInstanceOf(NotSent);
});
