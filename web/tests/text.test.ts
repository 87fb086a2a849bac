import { describe, expect, it } from "vitest";

import { aroundChanges, compareLines, looksLikeDiff, readDiff } from "../src/lines";
import { type Block, beginsWithHost, hostOf, isSafeAddress, parseMarkdown } from "../src/markdown";
import { brief, bytes, chunksOf, count, counted, cut, firstPart, isPlain, isSeen, named, pieces, visible } from "../src/text";

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

  it("shows gaps short, so that nothing is pushed out of sight behind them", () => {
    const path = `a.txt${" ".repeat(400)}/../../.ssh/authorized_keys`;
    expect(visible(path, 1_000)).toBe("a.txt[400 spaces]/../../.ssh/authorized_keys");
    expect(pieces(`hello${"\n".repeat(201)}rm -rf /`)).toEqual(["hello", "\n", { shown: "200 empty lines", title: expect.any(String) }, "\n", "rm -rf /"]);
    expect(visible(`x${"\u3000\u00a0".repeat(30)}y`)).toBe("x[60 spaces]y");
    const code = `def f():\n${" ".repeat(24)}return 1\n\n\n\ndef g(): ...\n`;
    expect(pieces(code)).toEqual([code]);
  });

  it("keeps the end of what is cut to one line", () => {
    expect(brief("/data/ann/projects/website/../../../../etc/passwd", 30)).toBe("/data/ann/projects…/etc/passwd");
    expect(brief(`a.txt${" ".repeat(100_000)}/../../.ssh/authorized_keys`, 60)).toContain("/.ssh/authorized_keys");
    expect(brief(`${"x".repeat(50)}👍👍👍👍👍👍`, 31)).not.toMatch(/\p{Surrogate}/u);
    expect(brief("short", 30)).toBe("short");
  });

  it("is shown by lines, too, where lines are short", () => {
    expect(firstPart("x".repeat(2_000), 800)).toBe(800);
    expect(firstPart("a\n".repeat(100_000), 800)).toBe(40);
    const gap = `hello${"\n".repeat(5_000)}rm -rf /${" ".repeat(5_000)}x`;
    expect(firstPart(gap, 800)).toBe(gap.length);
    expect(firstPart("a\nb", 800)).toBe(3);
  });

  it("is told apart where a field would not show all of it", () => {
    for (const text of ["a.txt", "two\nlines", "👩‍🚀", "שלום"]) expect(isSeen(text)).toBe(true);
    for (const text of ["a\u202eb", `a${" ".repeat(400)}b`, "\u0000"]) expect(isSeen(text)).toBe(false);
    expect([isPlain("a.txt"), isPlain("two\nlines"), isPlain("שלום")]).toEqual([true, false, false]);
  });

  it("comes in chunks that are all of it, and end with a line where they can", () => {
    for (const text of ["", "x".repeat(45), `${"line of text\n".repeat(9)}end`, "👍".repeat(25), "\n".repeat(30)]) {
      const chunks = chunksOf(text, 10);
      expect(chunks.join("")).toBe(text);
      for (const chunk of chunks) expect(chunk).not.toMatch(/\p{Surrogate}/u);
    }
    expect(chunksOf("1234567\nabcdefgh", 10)).toEqual(["1234567\n", "abcdefgh"]);
  });

  it("takes no longer for gaps made to take long", () => {
    const began = performance.now();
    for (const evil of [`${" ".repeat(39)}x`.repeat(5_000), `\n${" ".repeat(39)}x`.repeat(5_000), `${"\n ".repeat(4)}x`.repeat(20_000)]) pieces(evil);
    expect(performance.now() - began).toBeLessThan(500);
  });

  it("counts in numbers that can be read", () => {
    expect([count(12_345), count(1e308)]).toEqual(["12,345", "1.00e308"]);
    expect([counted(1, "tool"), counted(2, "tool")]).toEqual(["1 tool", "2 tools"]);
  });

  it("puts a name in quotes that could be taken for words of the page", () => {
    expect(named("bot-1")).toBe("bot-1");
    expect(named("the gateway says")).toBe("“the gateway says”");
    for (const name of ["Gateway", "everyone", "someone", "you"]) expect(named(name)).toBe(`“${name}”`);
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

  it("has headings without the marks that close them", () => {
    expect(one("## Title ##  ")).toMatchObject({ is: "heading", level: 2, inside: [{ text: "Title" }] });
    expect(one("# C#")).toMatchObject({ inside: [{ text: "C#" }] });
  });

  it("says where an address leads that does not say so itself", () => {
    expect(beginsWithHost("https://ok.example/a")).toBe(true);
    for (const address of ["https://bank.example@evil.example/", "https://bank.example:x@evil.example", "https://b\u0430nk.example/"]) {
      expect(beginsWithHost(address)).toBe(false);
    }
    expect(hostOf("https://bank.example@evil.example/")).toBe("evil.example");
    expect(hostOf("https://b\u0430nk.example/")).toBe("xn--bnk-6cd.example");
  });

  it.each(["*", "[", "`", "_a", "> ", "- ", "**a ", "![](", "~~a", "| "])("takes no longer for a heap of %s", (part) => {
    const began = performance.now();
    parseMarkdown(part.repeat(20_000 / part.length));
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  it("takes no longer for a heading that does not end", () => {
    const began = performance.now();
    parseMarkdown(`# a${" ".repeat(20_000)}b${"#".repeat(20_000)}c`);
    expect(performance.now() - began).toBeLessThan(100);
  });
});

describe("differences of lines", () => {
  it("are those that changed, with a few around them", () => {
    const before = Array.from({ length: 20 }, (_, at) => `line ${at}`).join("\n");
    const all = compareLines(before, before.replace("line 10", "other"));
    expect(all).toHaveLength(21);
    const lines = aroundChanges(all);
    expect(lines.filter((line) => line.is === "removed")).toEqual([{ is: "removed", text: "line 10" }]);
    expect(lines.filter((line) => line.is === "added")).toEqual([{ is: "added", text: "other" }]);
    expect(lines.filter((line) => line.is === "gap")).toHaveLength(2);
  });

  it("are found in texts of any length", () => {
    const long = Array.from({ length: 30_000 }, (_, at) => `line ${at}`).join("\n");
    const lines = aroundChanges(compareLines(`${long}\nharmless`, `${long}\nrm -rf /`));
    expect(lines.map(({ is, text }) => [is, text]).slice(-2)).toEqual([["removed", "harmless"], ["added", "rm -rf /"]]);
    expect(lines[0]).toEqual({ is: "gap", text: "29997 unchanged lines" });
  });

  it("mark the words that differ in a line that replaces a similar one", () => {
    const [old, now] = compareLines("rm -rf build/cache", "rm -rf build/");
    expect(old?.words?.filter(({ isChanged }) => isChanged).map(({ text }) => text)).toEqual(["cache"]);
    expect(old?.words?.map(({ text }) => text).join("")).toBe("rm -rf build/cache");
    expect(now?.words?.map(({ text }) => text).join("")).toBe("rm -rf build/");
  });

  it("leave nothing out where two texts have nothing in common", () => {
    const lines = compareLines("a\nb", "c\nd\ne");
    expect(lines.map(({ is }) => is)).toEqual(["removed", "removed", "added", "added", "added"]);
  });

  it("are read from a diff that came as text", () => {
    const diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new";
    expect(looksLikeDiff(diff)).toBe(true);
    expect(readDiff(diff).map((line) => line.is)).toEqual(["file", "file", "place", "removed", "added"]);
    expect(looksLikeDiff("- a list\n- of things")).toBe(false);
    expect(readDiff(" x\nx")).toEqual([{ is: "same", text: "x" }, { is: "place", text: "x" }]); // not the same line
  });
});
