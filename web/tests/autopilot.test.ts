import { describe, expect, it } from "vitest";

import { lastDays } from "../src/space/autopilot";
import { Told } from "./envelopes";

const RULE = { rule: "r1", state: "active", sentence: "`bot` may call it", author: "ratified", by: "ann", bound: "5 approved, 0 rejected" };

describe("the autopilot", () => {
  it("marks a proposal that it decided alone, with its rule, and who objected", () => {
    const told = new Told();
    told.say("autopilot", "autopilot/rule", RULE);
    const proposal = told.propose();
    told.say("autopilot", "autopilot/decision", { verdict: "fulfil", why: "covered", rule: "r1" }, { correlation_id: [proposal.id] });
    told.fulfil(proposal, "autopilot");
    const known = told.space.proposals.get(proposal.id);
    if (known === undefined) throw new Error("unknown proposal");
    expect(told.space.autopilot.automatic(known)).toMatchObject({ rule: "r1", objectedBy: null });
    expect(told.space.autopilot.rule("r1")).toMatchObject({ uses: 1, lastUsed: expect.any(Number) });
    told.say("ann", "autopilot/object", { proposal: proposal.id });
    expect(told.space.autopilot.automatic(known)).toMatchObject({ objectedBy: "ann" });
  });

  it("is not believed when the proposer speaks in its place", () => {
    const told = new Told();
    const proposal = told.propose();
    told.say("bot", "autopilot/decision", { verdict: "audit", why: "safe", rule: "r1" }, { correlation_id: [proposal.id] });
    expect(told.space.autopilot.decision({ id: proposal.id, proposer: "bot" })).toBeUndefined();
  });

  it("leaves a decision by a person unmarked", () => {
    const told = new Told();
    const proposal = told.propose();
    told.say("autopilot", "autopilot/decision", { verdict: "ask", why: "no rule" }, { correlation_id: [proposal.id] });
    told.fulfil(proposal, "ann");
    const known = told.space.proposals.get(proposal.id);
    expect(known && told.space.autopilot.automatic(known)).toBeNull();
  });

  it("keeps the newest word on a rule, in whatever order it is read", () => {
    const told = new Told();
    const first = told.say("autopilot", "autopilot/rule", RULE);
    told.say("autopilot", "autopilot/rule", { ...RULE, state: "revoked" });
    told.space.apply({ is: "autopilot", envelopes: [first], at: told.now });
    expect(told.space.autopilot.rule("r1")?.state).toBe("revoked");
  });

  it("sums the last days and the minutes that reviews would have taken", () => {
    const day = { proposals: 10, alone: 6, audited: 1, disagreed: 0, objected: 1, demoted: 1 };
    const days = [{ day: "2026-01-01", ...day }, { day: "2026-01-09", ...day }, { day: "2026-01-10", ...day }];
    const summary = { at: 0, mode: "act", configured: "act", days, reviewS: 30 } as const;
    const found = lastDays({ ...summary, days }, 7, Date.parse("2026-01-10T12:00:00Z"));
    expect(found).toMatchObject({ proposals: 20, alone: 12, objected: 2, minutesSaved: 6 });
  });
});
