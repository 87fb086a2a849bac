/** The vectors that this reducer and `mew.proposals` in Python both follow. */

import { describe, expect, it } from "vitest";

import text from "../../tests/proposals/vectors.json?raw";
import type { Envelope } from "../src/envelope";
import { type JsonObject, parseJson } from "../src/json";
import { type Proposal, Proposals, statusOf } from "../src/space/proposals";
import { Space } from "../src/space/space";

interface Vector {
  name: string;
  now: string;
  envelopes: { at: string; envelope: Envelope }[];
  expect: JsonObject[];
  open: string[];
  for?: Record<string, string[]>;
}

const vectors = parseJson(text) as unknown as Vector[];

describe("the life of a proposal", () => {
  it("is told by at least sixty vectors, each with a name of its own", () => {
    expect(new Set(vectors.map(({ name }) => name)).size).toBe(vectors.length);
    expect(vectors.length).toBeGreaterThanOrEqual(60);
  });

  it.each(vectors.map((vector): [string, Vector] => [vector.name, vector]))("%s", (_name, vector) => {
    const [proposals, now] = [new Proposals(), Date.parse(vector.now)];
    for (const { envelope, at } of vector.envelopes) proposals.apply(envelope, Date.parse(at));
    expect([...proposals.all.values()].map((proposal) => told(proposal, now))).toEqual(vector.expect);
    expect(proposals.open(now).map(({ id }) => id)).toEqual(vector.open);
    for (const [reviewer, ids] of Object.entries(vector.for ?? {})) expect(waitingFor(reviewer, vector), reviewer).toEqual(ids);
  });
});

/** What this reviewer, who may do everything, is asked about. */
function waitingFor(reviewer: string, { now, envelopes }: Vector): string[] {
  const space = new Space();
  space.participants.me = reviewer;
  space.participants.know(
    [{ id: reviewer, connected: true, connections: 1, capabilities: [{ kind: "*" }], paused: null, shut_down: false, streams: [] }],
    0,
  );
  for (const { envelope, at } of envelopes) space.apply({ is: "envelope", envelope, at: Date.parse(at) });
  return space.waiting(Date.parse(now)).map(({ id }) => id);
}

function told(proposal: Proposal, now: number): JsonObject {
  const { id, proposer, why, expiresAt, preferred, exclusive, rejections, fulfilments, unrelated, withdrawn } = proposal;
  return {
    id,
    status: statusOf(proposal, now),
    proposer,
    why,
    expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString().replace(/\.000Z$/, "Z"),
    preferred,
    exclusive,
    rejections: rejections.map(({ id, by, reason, message, explanations }) => ({
      id, by, reason, message, explanations: explanations.map(({ text }) => text),
    })),
    fulfilments: fulfilments.map(({ id, by, edited, late, via, answer }) => ({ id, by, edited, late, failed: answer?.failed ?? null, via })),
    unrelated: unrelated.map(({ id, by }) => ({ id, by })),
    withdrawn_by: withdrawn === null ? null : proposer,
    withdrawn_reason: withdrawn?.reason ?? null,
  };
}
