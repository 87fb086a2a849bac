import { describe, expect, it } from "vitest";

import { type Envelope, GATEWAY } from "../src/envelope";
import type { JsonObject } from "../src/json";
import { Told } from "./envelopes";

const SCHEMA = { type: "object", properties: { path: { type: "string" } } };
const TOOL: JsonObject = { name: "write_file", description: "Write a file.", inputSchema: SCHEMA };

function list(told: Told, tools: JsonObject[], more: { params?: JsonObject; result?: JsonObject } = {}): void {
  const payload = { jsonrpc: "2.0", id: 1, method: "tools/list", ...(more.params === undefined ? {} : { params: more.params }) };
  told.answer(told.say("ann", "mcp/request", payload, { to: ["files"] }), { tools, ...more.result });
}

describe("a tool that was proposed", () => {
  it("is said to have changed where it is not what it was when it was proposed", () => {
    const told = new Told();
    list(told, [TOOL]);
    const proposal = told.propose();
    expect(told.space.tools.changedSince(proposal.id, "files")).toBeNull();
    list(told, [{ ...TOOL, inputSchema: { ...SCHEMA, properties: { path: { type: "integer" } } } }]);
    expect(told.space.tools.changedSince(proposal.id, "files")).toMatchObject({
      was: { schema: SCHEMA },
      changes: [{ path: "inputSchema.properties.path.type", old: "string", new: "integer" }],
    });
    expect(told.space.tools.changedSince(told.propose().id, "files")).toBeNull();
  });

  it("is compared with what was first seen after, where nobody had listed it before", () => {
    const told = new Told();
    const proposal = told.propose();
    list(told, [TOOL]);
    expect(told.space.tools.changedSince(proposal.id, "files")).toBeNull();
    list(told, [{ ...TOOL, description: "Write a file, and tell everyone." }]);
    expect(told.space.tools.changedSince(proposal.id, "files")!.changes.map(({ path }) => path)).toEqual(["description"]);
    list(told, [TOOL]);
    expect(told.space.tools.changedSince(proposal.id, "files")).toBeNull();
  });

  it("is known to be gone where a whole list does not have it, and not where a page does not", () => {
    const told = new Told();
    list(told, [TOOL]);
    const proposal = told.propose();
    list(told, [{ name: "other" }], { params: { cursor: "2" } });
    list(told, [{ name: "other" }], { result: { nextCursor: "2" } });
    expect(told.space.tools.get("files", "write_file")!.listed).toBe(true);
    list(told, [{ name: "other" }]);
    expect(told.space.tools.changedSince(proposal.id, "files")).toMatchObject({ is: { listed: false }, changes: [] });
    expect(told.space.tools.offering("write_file")).toEqual([]);
  });

  it("is not up to date once its participant said that its tools are others, or came back", () => {
    const told = new Told();
    const changed = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
    list(told, [TOOL]);
    told.say("bot", "mcp/request", changed);
    expect(told.space.tools.isStale("files")).toBe(false);
    told.say("files", "mcp/request", changed);
    expect(told.space.tools.isStale("files")).toBe(true);
    list(told, [TOOL]);
    expect(told.space.tools.isStale("files")).toBe(false);
    told.say(GATEWAY, "system/presence", { event: "join", participant: { id: "files" } });
    expect(told.space.tools.isStale("files")).toBe(true);
  });

  it("has a list from before the proposal to be compared with once older envelopes come", () => {
    const before = new Told();
    list(before, [{ ...TOOL, description: "Once, it read a file." }]);
    const older = before.space.rows.list.flatMap((row): Envelope[] => [row.envelope, ...row.folded]).map((one) => ({ ...one, id: `old-${one.id}`, ...(one.correlation_id === undefined ? {} : { correlation_id: one.correlation_id.map((id) => `old-${id}`) }) }));
    const told = new Told();
    const proposal = told.propose();
    list(told, [TOOL]);
    expect(told.space.tools.changedSince(proposal.id, "files")).toBeNull();
    told.space.apply({ is: "older", envelopes: older, at: told.now });
    expect(told.space.tools.changedSince(proposal.id, "files")!.changes.map(({ path }) => path)).toEqual(["description"]);
  });

  it("carries what a bridge remembers of it from before anybody here saw it", () => {
    const told = new Told();
    list(told, [{ ...TOOL, _meta: { "mew/changed": { since: "2026-01-01", fields: ["description"] } } }]);
    expect(told.space.tools.get("files", "write_file")!.changed).toEqual(["description"]);
  });
});
