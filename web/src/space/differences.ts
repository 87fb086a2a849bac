/** PURE. How two JSON values differ, path by path. Numbers are compared by value, as in canonical JSON. */

import { type Json, exactDigits, isObject, own } from "../json";

/** `undefined` where there was, or is, nothing. */
export interface Difference {
  path: string;
  old: Json | undefined;
  new: Json | undefined;
}

const DIFFERENCES_MAX = 64;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** What changed from one value to another, the first 64. */
export function differences(old: Json | undefined, now: Json | undefined): Difference[] {
  const found: Difference[] = [];
  walk("", old, now, found, DIFFERENCES_MAX);
  return found;
}

export function same(one: Json | undefined, other: Json | undefined): boolean {
  const found: Difference[] = [];
  walk("", one, other, found, 1);
  return found.length === 0;
}

function walk(path: string, old: Json | undefined, now: Json | undefined, found: Difference[], most: number): void {
  if (found.length >= most || old === now) return;
  if (isObject(old) && isObject(now)) {
    for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
      walk(path + step(name, path), own(old, name), own(now, name), found, most);
    }
  } else if (Array.isArray(old) && Array.isArray(now)) {
    for (let place = 0; place < Math.max(old.length, now.length); place += 1) {
      walk(`${path}[${place}]`, old[place], now[place], found, most);
    }
  } else if (!sameLeaf(old, now)) {
    found.push({ path: path || "(all of it)", old, new: now });
  }
}

function sameLeaf(old: Json | undefined, now: Json | undefined): boolean {
  if (old === undefined || now === undefined) return false;
  const [one, other] = [exactDigits(old), exactDigits(now)];
  return one !== null && one === other;
}

function step(name: string, path: string): string {
  if (!PLAIN_NAME.test(name)) return `[${JSON.stringify(name)}]`;
  return path === "" ? name : `.${name}`;
}
