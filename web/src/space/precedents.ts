/** PURE. How alike proposals were decided before: what is the very same is told apart from what only looks like it. */

import type { JsonObject } from "../json";
import { same } from "./differences";
import { objectIn } from "./fields";
import { type Proposal, isOpen, toolOf } from "./proposals";

/** How near an earlier proposal is: the very same call by the same proposer, another call of that tool by it, or anything of others. */
export type Likeness = "same" | "own" | "others";

export interface Precedent {
  proposal: Proposal;
  likeness: Likeness;
}

const LIKENESSES: Likeness[] = ["same", "own", "others"];
const COMPARED_MAX = 200;
const EACH_MAX = 20;

/** Those that were alike and were decided: what its proposer proposed just so first, others' last; newest first in each. */
export function precedents(all: Iterable<Proposal>, proposal: Proposal, now: number): Precedent[] {
  const alike = [...all].filter(
    (other) => other !== proposal && (!isOpen(other, now) || other.rejections.length > 0) && isAlike(proposal, other),
  );
  const found = alike.reverse().slice(0, COMPARED_MAX).map((other) => ({ proposal: other, likeness: likenessOf(proposal, other) }));
  return LIKENESSES.flatMap((likeness) => found.filter((one) => one.likeness === likeness).slice(0, EACH_MAX));
}

/** Whether two proposals would do the same kind of thing: the same tool (or method) of the same participants. */
function isAlike(one: Proposal, other: Proposal): boolean {
  return one.method === other.method && toolOf(one) === toolOf(other) && one.to.join() === other.to.join();
}

function likenessOf(one: Proposal, other: Proposal): Likeness {
  if (one.proposer !== other.proposer) return "others";
  return same(valuesOf(one), valuesOf(other)) ? "same" : "own";
}

/** A progress token is another each time, and makes no other call. */
function valuesOf({ params }: Proposal): JsonObject {
  const { progressToken, ...meta } = objectIn(params._meta);
  return { ...params, _meta: meta };
}
