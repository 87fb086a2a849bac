import { describe, expect, it } from "vitest";

import { surplus } from "../src/space/eviction";

interface One {
  of: string;
  size: number;
  settled: boolean;
}

const whose = ({ of }: One): string => of;
const isSettled = ({ settled }: One): boolean => settled;

function ones(of: string, count: number, size: number, settled = false): One[] {
  return Array.from({ length: count }, () => ({ of, size, settled }));
}

describe("where too much is kept", () => {
  it("nothing goes while there is room", () => {
    expect(surplus(ones("bot", 5, 1), { countMax: 5, sizeMax: 5, isSettled, whose })).toEqual([]);
  });

  it("what is settled goes first, the oldest of it, and no more than must", () => {
    const [open, done] = [ones("bot", 2, 1), ones("eve", 3, 1, true)];
    expect(surplus([...open, ...done], { countMax: 3, sizeMax: 100, isSettled, whose })).toEqual(done.slice(0, 2));
  });

  it("then it is the oldest of who takes the most room, not of who has the most", () => {
    const [small, large] = [ones("bot", 10, 1), ones("eve", 3, 50)];
    const gone = surplus([...small, ...large], { countMax: 100, sizeMax: 70, isSettled, whose });
    expect(gone).toEqual(large.slice(0, 2));
  });
});
