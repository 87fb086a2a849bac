/** How often what comes is drawn: with each frame while that is cheap, less often when it is not. */

const HIDDEN_MS = 500;
/** Of the time, at most half goes into drawing what comes: the rest is for who types, scrolls and decides. */
const REST = 2;
const REST_MAX_MS = 250;

/** When to draw again, after drawing that began at one moment took so long. */
export function restUntil(began: number, tookMs: number): number {
  return began + Math.min(tookMs * REST, REST_MAX_MS);
}

export class FrameLimiter {
  #draw: () => void;
  #frame: number | undefined;
  #timer: number | undefined;
  #restUntil = 0;
  #began = 0;
  #after = new MessageChannel();

  constructor(draw: () => void) {
    this.#draw = draw;
    // A message sent while a frame is made is read once that is laid out and painted.
    this.#after.port1.onmessage = () => (this.#restUntil = restUntil(this.#began, performance.now() - this.#began));
    document.addEventListener("visibilitychange", this.#turned);
  }

  /** There is something new to draw. */
  ask(): void {
    if (this.#frame !== undefined || this.#timer !== undefined) return;
    // There are no frames while nobody looks.
    if (document.visibilityState === "visible") this.#frame = requestAnimationFrame(this.#atFrame);
    else this.#timer = window.setTimeout(this.#now, HIDDEN_MS);
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.#turned);
    this.#forget();
    this.#after.port1.close();
  }

  #atFrame = (at: number): void => {
    if (at < this.#restUntil) {
      this.#frame = requestAnimationFrame(this.#atFrame);
      return;
    }
    this.#began = at;
    this.#after.port2.postMessage(null);
    this.#now();
  };

  #now = (): void => {
    this.#forget();
    this.#draw();
  };

  #turned = (): void => {
    if (this.#frame === undefined && this.#timer === undefined) return;
    this.#forget();
    this.ask();
  };

  #forget(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    window.clearTimeout(this.#timer);
    this.#frame = undefined;
    this.#timer = undefined;
  }
}
