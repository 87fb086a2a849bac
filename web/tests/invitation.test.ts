import { describe, expect, it } from "vitest";

import { isHereOnly, linkAddress } from "../src/invitation";

describe("the link of an invitation", () => {
  it("leads to this page, with the code where browsers tell it to nobody", () => {
    expect(linkAddress("https://mew.example/team/?x=1#y", "aB-_9")).toBe("https://mew.example/team/#link=aB-_9");
  });

  it("is known to lead nowhere on another machine", () => {
    for (const address of ["http://127.0.0.1:8080/", "http://localhost/", "http://[::1]:8080/", "http://a.localhost/"]) expect(isHereOnly(address)).toBe(true);
    for (const address of ["http://10.0.0.7:8080/", "https://mew.example/", "http://127.example/"]) expect(isHereOnly(address)).toBe(false);
  });
});
