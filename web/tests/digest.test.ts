import { describe, expect, it } from "vitest";

import { parseJson } from "../src/json";
import { canonical, digest } from "../src/space/digest";

describe("the digest", () => {
  it("is the one that the SDK computes", () => {
    const params = { name: "write_file", arguments: { path: "ä€🙂", n: 1e21, b: [true, null, 0.1] } };
    expect(digest(["files"], "tools/call", params, { type: "object" })).toBe("7f1cc4eeebe6f425c14aa8833a0905da2fdd8131e37668a09edc92d42a4bbddb");
    expect(digest(["b", "a", "a"], "x", { t: "y".repeat(1000) }, null)).toBe("b7162bf8ebd71fe92725dda46669d683336c15655e8b28fa626f6d81bd651aed");
    expect(digest([], "x", {}, null)).toBe("a773120e64c0c28957828fbacf234f9e7cf869820719895ec2f4e12dfa29a5a3");
  });

  it("does not depend on the order of names", () => {
    expect(canonical({ b: 1, a: [{ d: 2, c: 3 }] })).toBe('{"a":[{"c":3,"d":2}],"b":1}');
  });

  it("is none where readers could take a value for different ones", () => {
    expect(canonical("\ud800")).toBeNull();
    if ("rawJSON" in JSON) expect(canonical(parseJson("[12345678901234567890]"))).toBeNull();
  });
});
