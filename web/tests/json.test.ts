import { expect, test } from "vitest";

import { exactDigits, isObject, parseJson, sizeOfTree } from "../src/json";

test.each(["12345678901234567890", "-0.1234567890123456789", "1e400", "123456789.123456789123"])(
  "%s is sent on as it came",
  (digits) => {
    const parsed = parseJson(`{"value":${digits}}`);
    expect(JSON.stringify(parsed)).toBe(`{"value":${digits}}`);
  },
);

test.each(["0", "1.5", "-2e3", "9007199254740991", "0.1", "1.0", "100000000000000000000"])(
  "%s is a plain number",
  (digits) => {
    expect(parseJson(`[${digits}]`)).toEqual([Number(digits)]);
  },
);

test("what has too many digits is a number to nobody, and no object either", () => {
  const [long] = parseJson("[12345678901234567890]") as [never];
  expect(exactDigits(long)).toBe("12345678901234567890");
  expect(isObject(long)).toBe(false);
});

test("an object that says it is such a number is an object", () => {
  const claimed = parseJson('{"rawJSON": "12345678901234567890"}');
  expect(exactDigits(claimed)).toBeNull();
  expect(isObject(claimed)).toBe(true);
});

test("digits in texts change nothing", () => {
  const text = '{"text":"12345678901234567890 1e400","__proto__":{"x":1}}';
  expect(JSON.stringify(parseJson(text))).toBe(text);
});

test("the size of a tree is counted as far as anybody wants to know", () => {
  expect(sizeOfTree("x", 10)).toEqual({ values: 1, depth: 0 });
  expect(sizeOfTree([1, { a: [2] }, {}], 10)).toEqual({ values: 6, depth: 3 });
  expect(sizeOfTree(parseJson("[12345678901234567890]"), 10)).toEqual({ values: 2, depth: 1 });
  expect(sizeOfTree(Array.from({ length: 1_000 }, () => 1), 10).values).toBe(11);
});
