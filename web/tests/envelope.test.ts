import { expect, test } from "vitest";

import { readEnvelope } from "../src/envelope";

const GOOD = { protocol: "mew/v0.4", id: "e1", from: "ann", kind: "chat" };

test("an envelope is read, with what more it has", () => {
  const whole = { ...GOOD, to: ["bot"], correlation_id: [], context: "c", ts: "t", payload: { text: "hi" }, more: 1 };
  expect(readEnvelope(JSON.stringify(whole))).toEqual(whole);
});

test.each([
  "",
  "{",
  "[]",
  "null",
  JSON.stringify({ ...GOOD, id: 1 }),
  JSON.stringify({ ...GOOD, to: "bot" }),
  JSON.stringify({ ...GOOD, correlation_id: [1] }),
  JSON.stringify({ ...GOOD, payload: [] }),
  JSON.stringify({ ...GOOD, payload: null }),
  JSON.stringify({ ...GOOD, context: {} }),
])("%s is no envelope", (text) => {
  expect(readEnvelope(text)).toBeNull();
});
