/** PURE. The stream as rows: what belongs together is one row, and the oldest go when there are too many. */

import type { Envelope } from "../envelope";
import { roughSize } from "./fields";

export interface Row {
  /** Grows by one for each row; never used again. */
  key: number;
  envelope: Envelope;
  at: number;
  /** Envelopes that are shown inside this row: answers, thoughts, acknowledgements. */
  folded: Envelope[];
  /** Grows when what the row shows has changed. */
  version: number;
  size: number;
}

const FOLDED_MAX = 1_000;

export class Rows {
  /** Oldest first. Only ever appended to, or cut off in front. */
  list: Row[] = [];
  /** All envelopes in `list`, those folded included. */
  envelopes = 0;
  /** Grows when rows were cut off in front. */
  cut = 0;
  #byEnvelope = new Map<string, Row>();
  #nextKey = 0;
  #size = 0;
  #envelopesMax: number;
  #sizeMax: number;

  #onGone: (id: string) => void;

  /** `onGone` is told of each envelope that is no longer in `list`: who else keeps it would keep it for ever. */
  constructor(envelopesMax: number, sizeMax: number, onGone: (id: string) => void = () => undefined) {
    this.#envelopesMax = envelopesMax;
    this.#sizeMax = sizeMax;
    this.#onGone = onGone;
  }

  /** The row that shows this envelope. */
  of(id: string): Row | undefined {
    return this.#byEnvelope.get(id);
  }

  add(envelope: Envelope, at: number): Row {
    const size = sizeOf(envelope);
    const row: Row = { key: this.#nextKey++, envelope, at, folded: [], version: 0, size };
    this.list.push(row);
    this.#byEnvelope.set(envelope.id, row);
    this.#grow(size);
    return row;
  }

  fold(row: Row, envelope: Envelope): void {
    const size = sizeOf(envelope);
    row.folded.push(envelope);
    row.version += 1;
    row.size += size;
    this.#byEnvelope.set(envelope.id, row);
    if (row.folded.length > FOLDED_MAX) this.#unfold(row);
    this.#grow(size);
  }

  touch(row: Row | undefined): void {
    if (row !== undefined) row.version += 1;
  }

  /** How many rows came after this one. */
  since(row: Row): number {
    return this.#nextKey - 1 - row.key;
  }

  #unfold(row: Row): void {
    const oldest = row.folded.shift();
    if (oldest === undefined) return;
    const size = sizeOf(oldest);
    row.size -= size;
    this.#size -= size;
    this.envelopes -= 1;
    this.#byEnvelope.delete(oldest.id);
  }

  #grow(size: number): void {
    this.envelopes += 1;
    this.#size += size;
    if (this.envelopes <= this.#envelopesMax && this.#size <= this.#sizeMax) return;
    // A tenth at once: cutting in front of a long list costs as much for one as for many.
    let count = 0;
    while (count < this.list.length - 1) {
      if (this.envelopes <= this.#envelopesMax * 0.9 && this.#size <= this.#sizeMax * 0.9) break;
      const row = this.list[count];
      if (row === undefined) break;
      for (const { id } of [row.envelope, ...row.folded]) {
        this.#byEnvelope.delete(id);
        this.#onGone(id);
      }
      this.envelopes -= 1 + row.folded.length;
      this.#size -= row.size;
      count += 1;
    }
    this.list = this.list.slice(count);
    this.cut += count;
  }
}

function sizeOf({ payload }: Envelope): number {
  return 200 + roughSize(payload);
}
