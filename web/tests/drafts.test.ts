import { expect, test } from "vitest";

import { Drafts } from "../src/components/review/drafts";

test("what was begun stays until it is dropped, and the oldest gives way where there are too many", () => {
  const drafts = new Drafts<number>();
  for (let at = 0; at < 200; at += 1) drafts.keep(`d${at}`, at);
  drafts.keep("d0", -1);
  drafts.keep("new", 0);
  expect([drafts.get("d0"), drafts.get("d1"), drafts.get("d2")]).toEqual([-1, undefined, 2]);
  drafts.drop("d2");
  expect(drafts.get("d2")).toBeUndefined();
});
