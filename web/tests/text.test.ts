import { describe, expect, it } from "vitest";

import { compareLines, looksLikeDiff, readDiff } from "../src/lines";
import { type Block, isSafeAddress, parseMarkdown } from "../src/markdown";
import { bytes, cut, named, pieces, visible } from "../src/text";

describe("text of others", () => {
  it("is left alone where it is only text, in any language", () => {
    for (const text of ["hello", "שלום עולם", "مرحبا", "naïve café", "日本語", "👩‍🚀 ❤️ 👍🏽", "line\nline\ttab"]) expect(pieces(text)).toEqual([text]);
  });

  it("shows what would turn it round, hide it or end it", () => {
    expect(visible("gpj.\u202Eexe")).toBe("gpj.[U+202E]exe");
    expect(visible("a\u200Bb\u0000c\u{E0041}")).toBe("a[U+200B]b[U+0000]c[U+E0041]");
    expect(visible("\ud800x")).toBe("[U+D800]x");
  });

  it("shows heaps of accents as such", () => {
    expect(visible(`a${"\u0301".repeat(50)}b`)).toBe(`a${"\u0301".repeat(4)}[+46]b`);
  });

  it("puts a name in quotes that could be taken for words of the page", () => {
    expect(named("bot-1")).toBe("bot-1");
    expect(named("the gateway says")).toBe("“the gateway says”");
  });

  it("is never cut in the middle of a character", () => {
    expect(cut("ab👍cd", 4)).toBe("ab…");
    expect(bytes(1536)).toBe("1.5 KiB");
  });
});

describe("Markdown", () => {
  const one = (text: string): Block => parseMarkdown(text)[0]!;

  it("becomes blocks and what is inside them", () => {
    expect(one("**bold** and `code`")).toEqual({
      is: "paragraph",
      inside: [{ is: "strong", inside: [{ is: "text", text: "bold" }] }, { is: "text", text: " and " }, { is: "code", text: "code" }],
    });
    expect(one("```py\n<b>x</b>\n```")).toEqual({ is: "code", language: "py", text: "<b>x</b>" });
    expect(one("- a\n- b")).toMatchObject({ is: "list", ordered: false, items: [[{ is: "paragraph" }], [{ is: "paragraph" }]] });
    expect(one("|a|b|\n|-|-|\n|1|2|")).toMatchObject({ is: "table", rows: [[expect.anything(), expect.anything()]] });
  });

  it("has no HTML in it", () => {
    expect(one("<script>alert(1)</script>")).toEqual({ is: "paragraph", inside: [{ is: "text", text: "<script>alert(1)</script>" }] });
  });

  it("keeps where a link leads, and leads nowhere dangerous", () => {
    expect(one("[bank](https://evil.example/)")).toMatchObject({ inside: [{ is: "link", address: "https://evil.example/" }] });
    for (const address of ["javascript:alert(1)", "data:text/html,x", "vbscript:x", "//evil.example", "java\nscript:x", "file:///etc/passwd"]) {
      expect(isSafeAddress(address)).toBe(false);
    }
    expect(isSafeAddress("https://ok.example/a?b=c")).toBe(true);
  });

  it("takes no longer for what was made to take long", { timeout: 30_000 }, () => {
    const began = performance.now();
    for (const evil of ["*".repeat(20_000), "[".repeat(20_000), "`".repeat(20_000), "_a".repeat(10_000), "> ".repeat(10_000), "- ".repeat(10_000), "**a ".repeat(5_000), "![](".repeat(5_000)]) {
      parseMarkdown(evil);
    }
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});

describe("differences of lines", () => {
  it("are those that changed, with a few around them", () => {
    const before = Array.from({ length: 20 }, (_, at) => `line ${at}`).join("\n");
    const lines = compareLines(before, before.replace("line 10", "other"));
    expect(lines.filter((line) => line.is === "removed")).toEqual([{ is: "removed", text: "line 10" }]);
    expect(lines.filter((line) => line.is === "added")).toEqual([{ is: "added", text: "other" }]);
    expect(lines.filter((line) => line.is === "gap")).toHaveLength(2);
  });

  it("are read from a diff that came as text", () => {
    const diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new";
    expect(looksLikeDiff(diff)).toBe(true);
    expect(readDiff(diff).map((line) => line.is)).toEqual(["file", "file", "place", "removed", "added"]);
    expect(looksLikeDiff("- a list\n- of things")).toBe(false);
  });
});
