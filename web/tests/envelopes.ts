/** Envelopes for tests, a second apart. */

import { type Envelope, GATEWAY } from "../src/envelope";
import type { JsonObject } from "../src/json";
import { Space } from "../src/space/space";

const BEGIN = Date.parse("2026-01-01T12:00:00Z");

export class Told {
  readonly space: Space;
  #count = 0;

  constructor(space = new Space()) {
    this.space = space;
    space.participants.me = "ann";
    this.welcome([{ kind: "*" }], ["bot", "files"]);
  }

  get now(): number {
    return BEGIN + this.#count * 1000;
  }

  /** The proposals that wait for ann now. */
  get waiting(): string[] {
    return this.space.waiting(this.now).map(({ id }) => id);
  }

  welcome(capabilities: JsonObject[], others: string[]): void {
    const participants = others.map((id) => ({ id, capabilities: [] }));
    this.say(GATEWAY, "system/welcome", { you: { id: "ann", capabilities }, participants }, { to: ["ann"] });
  }

  say(from: string, kind: string, payload: JsonObject = {}, more: Partial<Envelope> = {}): Envelope {
    this.#count += 1;
    const envelope: Envelope = { protocol: "mew/v0.4", id: `e${this.#count}`, from, kind, payload, ts: new Date(this.now).toISOString(), ...more };
    this.space.apply({ is: "envelope", envelope, at: this.now });
    return envelope;
  }

  propose(args: JsonObject = { path: "a.txt", content: "x" }, more: Partial<Envelope> = {}): Envelope {
    return this.say("bot", "mcp/proposal", { method: "tools/call", params: { name: "write_file", arguments: args } }, { to: ["files"], ...more });
  }

  fulfil(proposal: Envelope, by = "ann", payload: JsonObject = proposal.payload ?? {}): Envelope {
    return this.say(by, "mcp/request", { jsonrpc: "2.0", id: 1, ...payload }, { to: proposal.to ?? [], correlation_id: [proposal.id] });
  }

  answer(request: Envelope, result: JsonObject = { content: [{ type: "text", text: "done" }] }): Envelope {
    return this.say("files", "mcp/response", { jsonrpc: "2.0", id: 1, result }, { to: [request.from], correlation_id: [request.id] });
  }
}
