import { describe, expect, it } from "vitest";

import type { JsonObject } from "../src/json";
import { secretsAsked } from "../src/space/secrets";

const asking = (properties: JsonObject, message = "Please fill in"): string[] => secretsAsked({ message, schema: { type: "object", properties } });

describe("a question that asks for a secret", () => {
  it.each(["password", "pass_word", "apiKey", "API key", "mew-token", "OTP", "userPin", "ｐａｓｓｗｏｒｄ", "client_secret"])("is told by a field called %s", (name) => {
    expect(asking({ [name]: { type: "string" } })).toEqual([name]);
  });

  it("is told by what is said of a field, by its format, and by its own words", () => {
    expect(asking({ a: { type: "string", title: "Your password" }, b: { type: "string" } })).toEqual(["a"]);
    expect(asking({ x: { type: "string", format: "password" } })).toEqual(["x"]);
    expect(asking({ x: { type: "string" } }, "Session expired. Enter your mew token")).toEqual(["in the message"]);
  });

  it("is none for harmless names", () => {
    expect(asking({ branch: {}, max_tokens: { type: "integer" }, opinion: {}, key: {}, compass: {}, mail: {} }, "Spinning up: which branch?")).toEqual([]);
  });
});
