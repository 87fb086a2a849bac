/** The name of a proposal, the first eight characters of its id: pressing it copies the whole id. */

import { useSignal } from "@preact/signals";

import { nameOf } from "../../space/proposals";
import { visible } from "../../text";
import { copyText } from "../values/clipboard";

const COPIED_MS = 2_000;

export function ProposalId({ proposal }: { proposal: { id: string } }) {
  const copied = useSignal(false);
  const copy = async (): Promise<void> => {
    copied.value = await copyText(proposal.id);
    window.setTimeout(() => (copied.value = false), COPIED_MS);
  };
  return (
    <button
      type="button"
      class="quiet proposal-id"
      title={`Copy the proposal's id: ${visible(proposal.id, 120)}`}
      onClick={() => void copy()}
    >
      {copied.value ? "copied" : visible(nameOf(proposal))}
    </button>
  );
}
