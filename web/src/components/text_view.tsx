/** Text, names and moments of others, shown so that they cannot pass for anything else. */

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";

import { GATEWAY } from "../envelope";
import { counted, cut, firstPart, lasting, named, pieces } from "../text";
import { useDesk } from "./desk";

/** Text as it is; what cannot be seen in it is shown as such. */
export function Words({ text, most = 4_000, class: name }: { text: string; most?: number; class?: string }) {
  return (
    <bdi class={name}>
      {pieces(cut(text, most)).map((piece, at) =>
        typeof piece === "string" ? (
          piece
        ) : (
          <span key={at} class="hidden-char" title={piece.title}>
            {piece.shown}
          </span>
        ),
      )}
    </bdi>
  );
}

interface Long {
  text: string;
  first?: number;
  class?: string;
}

const SHORT = 400;
const STEP = 20_000;

/** Long text, the beginning first, and more of it for who asks. */
export function LongText({ text, first = 2_000, class: name = "" }: Long) {
  if (text.length <= SHORT && firstPart(text, first) === text.length) return Words({ text, class: `long-text ${name}` });
  return <Unfolding text={text} first={first} class={name} />;
}

function Unfolding({ text, first, class: name }: Required<Long>) {
  const most = useSignal(first);
  const shown = firstPart(text, most.value);
  const more = text.length - shown;
  return (
    <div class={`long-text ${name}`} tabIndex={0}>
      <Words text={more > 0 ? `${text.slice(0, shown)}…` : text} most={shown + 1} />
      {more > 0 && (
        <button type="button" class="quiet" onClick={() => (most.value += STEP)}>
          Show more ({counted(more, "character")})
        </button>
      )}
    </div>
  );
}

const HUES = 12;

/** A participant. Colours help to follow one; they are no proof of who it is. */
export function Who({ id }: { id: string }) {
  return whoIs(id, useDesk().space.me);
}

/** The same, for rows of which many come. */
export function whoIs(id: string, me: string): VNode {
  if (id === GATEWAY) {
    return (
      <span class="who gateway" title="said by the gateway itself">
        gateway
      </span>
    );
  }
  return (
    <span class={`who hue-${hueOf(id)}`} title={id === me ? "this is you" : undefined}>
      {named(id, 60)}
      {id === me && <small> (you)</small>}
    </span>
  );
}

export function Whom({ ids }: { ids: readonly string[] }) {
  if (ids.length === 0) return <span class="who">everyone</span>;
  return (
    <>
      {ids.slice(0, 5).map((id, at) => (
        <span key={id}>
          {at > 0 && ", "}
          <Who id={id} />
        </span>
      ))}
      {ids.length > 5 && ` and ${ids.length - 5} more`}
    </>
  );
}

export function hueOf(id: string): number {
  let hash = 7;
  for (let at = 0; at < id.length && at < 128; at += 1) hash = (hash * 31 + id.charCodeAt(at)) >>> 0;
  return hash % HUES;
}

// Made once: to make one takes longer than to draw a row.
const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const TIME = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** How long ago; the moment itself for who points at it. */
export function Ago({ at }: { at: number }) {
  const now = useDesk().now.value;
  const passed = Math.max(0, now - at);
  return (
    <time dateTime={new Date(at).toISOString()} title={WHOLE.format(at)}>
      {passed < 10_000 ? "just now" : `${lasting(passed)} ago`}
    </time>
  );
}

interface Moment {
  second: number;
  exact: string;
  whole: string;
  time: string;
}

/** Many rows come within one second, and to write it out takes longer than all the rest. */
let latest: Moment = { second: Number.NaN, exact: "", whole: "", time: "" };

function momentOf(at: number): Moment {
  const second = Math.floor(at / 1000);
  if (latest.second !== second) latest = { second, exact: new Date(second * 1000).toISOString(), whole: WHOLE.format(at), time: TIME.format(at) };
  return latest;
}

/** The time of day. */
export function clockOf(at: number): string {
  return TIME.format(at);
}

/** The same as an element, for rows of which many come. */
export function clock(at: number): VNode {
  const { exact, whole, time } = momentOf(at);
  return (
    <time class="clock" dateTime={exact} title={whole}>
      {time}
    </time>
  );
}
