/** What somebody has begun to write, by what it is for: it stays while they look at something else. */

const KEPT_MAX = 200;

export class Drafts<Draft> {
  #kept = new Map<string, Draft>();

  get(id: string): Draft | undefined {
    return this.#kept.get(id);
  }

  /** The oldest gives way where there are too many. */
  keep(id: string, draft: Draft): void {
    this.#kept.delete(id);
    this.#kept.set(id, draft);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest);
  }

  drop(id: string): void {
    this.#kept.delete(id);
  }
}
