/** PURE. Which records to evict when the page holds too many, so that no participant crowds out another. */

export interface EvictionPolicy<One> {
  countMax: number;
  sizeMax: number;
  isSettled(one: One): boolean;
  whose(one: One): string;
}

/** Return the records to evict: the oldest settled ones first, then the oldest of the participant that takes the most room. */
export function surplus<One extends { size: number }>(all: readonly One[], policy: EvictionPolicy<One>): One[] {
  const gone: One[] = [];
  let size = all.reduce((sum, one) => sum + one.size, 0);
  const isTooMuch = (): boolean => all.length - gone.length > policy.countMax || size > policy.sizeMax;
  const drop = (one: One): void => {
    gone.push(one);
    size -= one.size;
  };
  const unsettled = new Map<string, { size: number; list: One[] }>();
  for (const one of all) {
    if (!isTooMuch()) return gone;
    if (policy.isSettled(one)) {
      drop(one);
      continue;
    }
    const whose = policy.whose(one);
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
