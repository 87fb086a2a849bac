import { describe, expect, it } from "vitest";

import { restUntil } from "../src/components/app/frame_limiter";

describe("pace", () => {
  it("rests as long as drawing took, so that half of the time is for who uses the page", () => {
    expect(restUntil(1000, 8)).toBe(1016);
    expect(restUntil(1000, 0)).toBe(1000);
  });

  it("draws four times a second, however long that takes", () => {
    expect(restUntil(1000, 5_000)).toBe(1250);
  });
});
