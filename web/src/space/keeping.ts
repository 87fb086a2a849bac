/** PURE. What to let go of where too much is kept, so that nobody drowns another's. */

export interface Keeping<One> {
  countMax: number;
  sizeMax: number;
  isSettled(one: One): boolean;
  whose(one: One): string;
}

/** Those to drop, of all in their order: the oldest that are settled; then the oldest of whoever takes the most room. */
export function surplus<One extends { size: number }>(all: readonly One[], keeping: Keeping<One>): One[] {
  const gone: One[] = [];
  let size = all.reduce((sum, one) => sum + one.size, 0);
  const isTooMuch = (): boolean => all.length - gone.length > keeping.countMax || size > keeping.sizeMax;
  const drop = (one: One): void => {
    gone.push(one);
    size -= one.size;
  };
  const unsettled = new Map<string, { size: number; list: One[] }>();
  for (const one of all) {
    if (!isTooMuch()) return gone;
    if (keeping.isSettled(one)) {
      drop(one);
      continue;
    }
    const whose = keeping.whose(one);
    const theirs = unsettled.get(whose) ?? { size: 0, list: [] };
    theirs.size += one.size;
    theirs.list.push(one);
    unsettled.set(whose, theirs);
  }
  while (isTooMuch() && unsettled.size > 0) {
    const most = [...unsettled.values()].reduce((one, other) => (other.size > one.size ? other : one));
    const oldest = most.list.shift();
    if (oldest === undefined) break;
    most.size -= oldest.size;
    drop(oldest);
  }
  return gone;
}
