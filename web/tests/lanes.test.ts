import { describe, expect, it } from "vitest";

import { type Lane, type Span, barFrom, lanesOf } from "../src/components/stream/timeline_lanes";
import { Told } from "./envelopes";

const STEP_MS = 500;

function spanOf(told: Told): Span {
  return { begin: told.now - 60_000, end: told.now, stepMs: STEP_MS };
}

function laneOf(lanes: Lane[], name: string): Lane {
  const found = lanes.find((lane) => lane.name === name);
  if (found === undefined) throw new Error(`no lane of ${name}`);
  return found;
}

describe("lanes", () => {
  it("has a bar for who waits and one for who works, from the question to the answer", () => {
    const told = new Told();
    const proposal = told.propose();
    const request = told.fulfil(proposal);
    told.answer(request);
    const lanes = lanesOf(told.space, spanOf(told));
    expect(lanes.map(({ name }) => name)).toEqual(["ann", "bot", "files"]);
    expect(laneOf(lanes, "bot").bars.map(({ tone, words }) => [tone, words])).toEqual([["waits", "bot waits for a decision on write_file: 1.0 s"]]);
    const [works] = laneOf(lanes, "files").bars;
    const [waits] = laneOf(lanes, "ann").bars;
    expect(works?.tone).toBe("works");
    expect([works?.from, works?.to]).toEqual([waits?.from, waits?.to]);
    expect((works?.to ?? 0) - (works?.from ?? 0)).toBe(1000);
  });

  it("lets a bar go on until the end while nobody answers", () => {
    const told = new Told();
    told.propose();
    told.say("bot", "chat", { text: "well?" });
    const span = spanOf(told);
    const bar = laneOf(lanesOf(told.space, span), "bot").bars[0];
    expect(bar?.to).toBe(span.end);
    expect(bar?.words).toContain("so far");
  });

  it("makes one bar of all that is said at nearly the same time, so that a flood is one, too", () => {
    const told = new Told();
    for (let count = 0; count < 20; count += 1) told.say("bot", "chat", { text: `${count}` });
    const lanes = lanesOf(told.space, { ...spanOf(told), stepMs: 1e12 });
    expect(laneOf(lanes, "bot").bars.map(({ words }) => words)).toEqual(["bot sends 20 messages"]);
    expect(laneOf(lanesOf(told.space, spanOf(told)), "bot").bars).toHaveLength(20);
  });

  it("shows nothing of before, and nothing of later", () => {
    const told = new Told();
    told.say("bot", "chat", { text: "before" });
    const span = { begin: told.now + 1, end: told.now + 1500, stepMs: STEP_MS };
    told.say("ann", "chat", { text: "within" });
    told.say("files", "chat", { text: "later" });
    expect(lanesOf(told.space, span).map(({ name }) => name)).toEqual(["ann"]);
  });

  it("leads along a lane, and to what is nearest in the next one", () => {
    const told = new Told();
    for (const who of ["ann", "bot", "ann", "bot", "ann"]) told.say(who, "chat", { text: "hello" });
    const lanes = lanesOf(told.space, spanOf(told));
    const [ann, bot] = [laneOf(lanes, "ann").bars, laneOf(lanes, "bot").bars];
    const [first, second, third] = ann;
    if (first === undefined || second === undefined || third === undefined) throw new Error("three were said");
    expect(barFrom(lanes, first, "ArrowRight")).toBe(second);
    expect(barFrom(lanes, third, "ArrowRight")).toBeUndefined();
    expect(barFrom(lanes, third, "Home")).toBe(first);
    expect(barFrom(lanes, third, "ArrowDown")).toBe(bot[1]);
    expect(barFrom(lanes, third, "ArrowUp")).toBeUndefined();
    expect(barFrom(lanes, third, "a")).toBeUndefined();
  });
});
