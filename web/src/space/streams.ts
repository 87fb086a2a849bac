/** PURE. Streams: who writes, how much came and how fast, and the content where it is text (§3.10). */

import { type Envelope, GATEWAY } from "../envelope";
import { type JsonObject, isObject } from "../json";
import { listIn, numberIn, textIn } from "./fields";

export interface Stream {
  id: string;
  owner: string;
  description: string | null;
  direction: string | null;
  expectedBytes: number | null;
  openedAt: number;
  closedAt: number | null;
  closedWhy: string | null;
  bytes: number;
  frames: number;
  /** Bytes a second, over the last few seconds. */
  rate: number;
  /** The newest of what came, where it was text. */
  tail: string;
  isText: boolean;
  seen: { at: number; bytes: number }[];
}

const KEPT_MAX = 512;
const TAIL_MAX = 16_384;
const RATE_MS = 3_000;

export class Streams {
  #all = new Map<string, Stream>();
  /** A `stream/open` -> its stream, for closes that name only that. */
  #opened = new Map<string, string>();

  get(id: string): Stream | undefined {
    return this.#all.get(id);
  }

  byOpening(envelopeId: string): Stream | undefined {
    return this.#all.get(this.#opened.get(envelopeId) ?? "");
  }

  get active(): Stream[] {
    return [...this.#all.values()].filter((stream) => stream.closedAt === null);
  }

  /** Only what the gateway says opens a stream. */
  apply(envelope: Envelope, at: number): Stream | null {
    const payload = envelope.payload ?? {};
    if (envelope.kind === "stream/open" && envelope.from === GATEWAY) {
      const stream = this.#open(payload, envelope.to?.[0] ?? "", at);
      if (stream !== null) this.#opened.set(envelope.id, stream.id);
      if (this.#opened.size > KEPT_MAX) this.#opened.delete(this.#opened.keys().next().value ?? "");
      return stream;
    }
    const named = textIn(payload.stream_id) ?? this.#opened.get(envelope.correlation_id?.[0] ?? "") ?? "";
    const stream = this.#all.get(named);
    if (stream === undefined) return null;
    if (envelope.kind === "stream/close" && (envelope.from === stream.owner || envelope.from === GATEWAY)) {
      stream.closedAt ??= at;
      stream.closedWhy ??= textIn(payload.reason);
      stream.rate = 0;
    } else if (envelope.kind === "stream/ownership-transferred" && envelope.from === GATEWAY) {
      stream.owner = textIn(payload.new_owner) ?? stream.owner;
    }
    return stream;
  }

  /** Those that were open when we came. */
  welcome(payload: JsonObject, at: number): void {
    for (const listed of listIn(payload.active_streams)) {
      if (isObject(listed)) this.#open(listed, textIn(listed.owner) ?? "", at);
    }
  }

  frame(id: string, data: string | Uint8Array, at: number): Stream | null {
    const stream = this.#all.get(id);
    if (stream === undefined || stream.closedAt !== null) return null;
    const bytes = typeof data === "string" ? data.length : data.byteLength;
    stream.bytes += bytes;
    stream.frames += 1;
    stream.isText = stream.isText && typeof data === "string";
    if (typeof data === "string") stream.tail = (stream.tail + data).slice(-TAIL_MAX);
    stream.seen.push({ at, bytes });
    if (stream.seen.length > 200) stream.seen.splice(0, 100);
    stream.rate = rateOf(stream, at);
    return stream;
  }

  #open(payload: JsonObject, requester: string, at: number): Stream | null {
    const id = textIn(payload.stream_id);
    if (id === null) return null;
    const known = this.#all.get(id);
    if (known !== undefined) return known;
    const stream: Stream = {
      id,
      owner: textIn(payload.owner) ?? requester,
      description: textIn(payload.description),
      direction: textIn(payload.direction),
      expectedBytes: numberIn(payload.expected_size_bytes),
      openedAt: at,
      closedAt: null,
      closedWhy: null,
      bytes: 0,
      frames: 0,
      rate: 0,
      tail: "",
      isText: true,
      seen: [],
    };
    this.#all.set(id, stream);
    if (this.#all.size > KEPT_MAX) this.#all.delete(this.#all.keys().next().value ?? "");
    return stream;
  }
}

function rateOf(stream: Stream, at: number): number {
  const recent = stream.seen.filter((one) => at - one.at < RATE_MS);
  const bytes = recent.reduce((sum, one) => sum + one.bytes, 0);
  return (bytes * 1000) / Math.max(RATE_MS / 3, at - (recent[0]?.at ?? at));
}
