/** The result of an invitation, shown once: a sign-in link for a person and a token for a program. */

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { isHereOnly, linkAddress } from "../../invitation";
import type { JsonObject } from "../../json";
import { textIn } from "../../space/fields";
import { lasting, visible } from "../../text";
import { Problem, makeLink } from "../../wire";
import { Copying } from "../values/clipboard";
import { usePageState } from "../app/page_state";
import { DialogBox } from "../app/dialog";

/** Whom one invites seldom looks within minutes. */
const LIFETIME_S = 86_400;

type Link = { is: "making" } | { is: "made"; address: string; expiresAt: number } | { is: "none"; why: string };

export function Invited({ ack }: { ack: JsonObject }) {
  const page = usePageState();
  const token = textIn(ack.token) ?? "";
  const name = visible(textIn(ack.participant_id) ?? "They", 60);
  const link = useSignal<Link>({ is: "making" });
  const copied = useSignal(false);
  const asking = useSignal(false);
  const stay = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => stay.current?.focus(), [asking.value]);
  useEffect(() => {
    void makeLink({ space: page.who.space, token }, LIFETIME_S).then(
      ({ code, expires }) => (link.value = { is: "made", address: linkAddress(document.baseURI, code), expiresAt: Date.parse(expires) }),
      (error: unknown) => (link.value = { is: "none", why: error instanceof Problem ? error.message : "an unexpected error occurred in the page" }),
    );
    return () => (page.invited.value = null);
  }, []);
  const now = link.value;
  const close = (): void => void (page.dialog.value = null);
  const took = (): void => {
    copied.value = true;
    asking.value = false;
  };
  /** A second Escape takes the question back, not the link. */
  const mayLeave = (): boolean => {
    if (!copied.value) asking.value = !asking.value;
    return copied.value;
  };
  return (
    <DialogBox title={`${name} is invited`} mayLeave={mayLeave}>
      <div class="form">
        <p>Pass this on through a private channel. It is not shown again.</p>
        {now.is === "none" ? (
          <p class="warning" role="note">
            No link could be made: {visible(now.why, 200)}. The token works.
          </p>
        ) : (
          <Copying name="Sign-in link" value={now.is === "made" ? now.address : ""} placeholder="creating…" first onCopied={took} />
        )}
        {now.is === "made" && (
          <p class="dim">
            For a person: it signs in as {name}. It works once and expires in {lasting(now.expiresAt - Date.now())}.
          </p>
        )}
        {now.is === "made" && isHereOnly(now.address) && (
          <p class="warning" role="note">
            The link points to this machine and does not work on another one.
          </p>
        )}
        <details class="more" open={now.is === "none"}>
          <summary>For a program: the token, which does not expire</summary>
          <div class="form">
            <Copying name="Address" value={textIn(ack.connection_url) ?? ""} />
            <Copying name="Token" value={token} onCopied={took} />
          </div>
        </details>
        {asking.value ? (
          <div class="leaving" role="alert">
            <p class="warning">You have not copied the link or the token, and they are not shown again.</p>
            <div class="actions">
              <button type="button" onClick={close}>
                Close anyway
              </button>
              <button type="button" class="approve" ref={stay} onClick={() => (asking.value = false)}>
                Go back
              </button>
            </div>
          </div>
        ) : (
          <div class="actions">
            <button type="button" class="approve" onClick={() => mayLeave() && close()}>
              Done
            </button>
          </div>
        )}
      </div>
    </DialogBox>
  );
}
