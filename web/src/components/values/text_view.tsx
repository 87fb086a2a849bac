/** Text, names and moments of others, shown so that they cannot pass for anything else. */

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import { GATEWAY } from "../../envelope";
import { chunksOf, counted, cut, firstPart, lasting, named, pieces } from "../../text";
import { usePageState } from "../app/page_state";
import { useDisclosure, useFolded } from "../review/disclosure";
import { TARGETS_MAX } from "./summaries";

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
const CHUNK = 20_000;
/** What is to be approved is shown at once up to this length, in a box that scrolls. */
const ROOMY_CHARACTERS = 20_000;
const ROOMY_LINES = 2_000;
/** Everything is shown in steps, between which the page does other things. */
const EVERYTHING_STEP = 200_000;

/** Long text, the beginning first, and more of it for who asks. */
export function LongText({ text, first = 2_000, class: name = "" }: Long) {
  if (text.length <= SHORT && firstPart(text, first) === text.length) return Words({ text, class: `long-text ${name}` });
  return <Unfolding text={text} first={first} class={name} />;
}

function Unfolding({ text, first, class: name }: Required<Long>) {
  const disclosure = useDisclosure();
  const most = useSignal(disclosure?.isRoomy === true ? Math.max(first, ROOMY_CHARACTERS) : first);
  const reached = useSignal(0);
  const isAsked = disclosure !== null && disclosure.asked.value > 0;
  const room = disclosure?.isRoomy === true ? firstPart(text, ROOMY_CHARACTERS, ROOMY_LINES) : 0;
  const shown = Math.max(Math.min(reached.value, text.length), room, reached.value < text.length ? firstPart(text, most.value) : 0);
  const more = text.length - shown;
  useFolded(more > 0);
  useEffect(() => {
    if (!isAsked || more === 0) return undefined;
    const timer = window.setTimeout(() => (reached.value = shown + EVERYTHING_STEP));
    return () => window.clearTimeout(timer);
  }, [isAsked, more]);
  return (
    <div class={`long-text ${name}`} tabIndex={0}>
      {chunksOf(more > 0 ? `${text.slice(0, shown)}…` : text, CHUNK).map((chunk, at) => (
        <Chunk key={at} text={chunk} />
      ))}
      {more > 0 && (
        <button type="button" class="quiet" onClick={() => (most.value += STEP)}>
          Show more ({counted(more, "character")})
        </button>
      )}
    </div>
  );
}

// A card is drawn anew whenever something came: a chunk that is as it was costs nothing then.
function Chunk({ text }: { text: string }) {
  return useMemo(() => Words({ text, most: text.length }), [text]);
}

const HUES = 12;

/** What the page calls its reader; in the demo it is their id too. */
const YOU = "you";

/** A participant. Colours help to follow one; they are no proof of who it is. */
export function Who({ id }: { id: string }) {
  return whoIs(id, usePageState().space.me);
}

/** The same, for rows of which many come. */
export function whoIs(id: string, me: string): VNode {
  if (id === GATEWAY) {
    return (
      <span class="who gateway" title="Sent by the gateway itself">
        gateway
      </span>
    );
  }
  const isMe = id === me;
  return (
    <span class={`who hue-${hueOf(id)}`} title={isMe ? "This is you." : undefined}>
      {isMe && id === YOU ? YOU : named(id, 60)}
      {isMe && id !== YOU && <small> (you)</small>}
    </span>
  );
}

export function Whom({ ids, most = TARGETS_MAX }: { ids: readonly string[]; most?: number }) {
  if (ids.length === 0) return <span class="who">everyone</span>;
  return (
    <>
      {ids.slice(0, most).map((id, at) => (
        <span key={id}>
          {at > 0 && ", "}
          <Who id={id} />
        </span>
      ))}
      {ids.length > most && ` and ${ids.length - most} more`}
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
  const now = usePageState().now.value;
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

/** Date and time. */
export function wholeTime(at: number): string {
  return WHOLE.format(at);
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
