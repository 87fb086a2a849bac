/** PURE. Where rows of unknown heights lie in a long list: measured where they were shown, guessed where not. */

const BLOCK = 256;

export class Heights {
  #guess: number;
  #heights = new Float64Array(1024);
  #blocks: number[] = [];
  #length = 0;

  constructor(guess: number) {
    this.#guess = guess;
  }

  get length(): number {
    return this.#length;
  }

  get total(): number {
    let sum = 0;
    for (const block of this.#blocks) sum += block;
    return sum;
  }

  /** Begin anew with so many rows, some of which are known. */
  reset(length: number, known: (at: number) => number | undefined): void {
    this.#length = 0;
    this.#blocks = [];
    this.grow(length, known);
  }

  /** Rows were added at the end. */
  grow(length: number, known: (at: number) => number | undefined): void {
    if (length > this.#heights.length) {
      const larger = new Float64Array(Math.max(length, this.#heights.length * 2));
      larger.set(this.#heights);
      this.#heights = larger;
    }
    for (let at = this.#length; at < length; at += 1) {
      const height = known(at) ?? this.#guess;
      this.#heights[at] = height;
      const block = Math.floor(at / BLOCK);
      this.#blocks[block] = (at % BLOCK === 0 ? 0 : (this.#blocks[block] ?? 0)) + height;
    }
    this.#length = length;
  }

  /** Returns by how much it changed. */
  measure(at: number, height: number): number {
    const change = height - (this.#heights[at] ?? 0);
    if (at < 0 || at >= this.#length || Math.abs(change) < 0.5) return 0;
    this.#heights[at] = height;
    const block = Math.floor(at / BLOCK);
    this.#blocks[block] = (this.#blocks[block] ?? 0) + change;
    return change;
  }

  /** Where a row begins. */
  offset(at: number): number {
    const block = Math.floor(at / BLOCK);
    let sum = 0;
    for (let place = 0; place < block; place += 1) sum += this.#blocks[place] ?? 0;
    for (let place = block * BLOCK; place < at; place += 1) sum += this.#heights[place] ?? 0;
    return sum;
  }

  /** The row at a height. */
  rowAt(offset: number): number {
    let sum = 0;
    let block = 0;
    while (block < this.#blocks.length - 1 && sum + (this.#blocks[block] ?? 0) <= offset) {
      sum += this.#blocks[block] ?? 0;
      block += 1;
    }
    let at = block * BLOCK;
    while (at < this.#length - 1 && sum + (this.#heights[at] ?? 0) <= offset) {
      sum += this.#heights[at] ?? 0;
      at += 1;
    }
    return Math.max(0, at);
  }
}
