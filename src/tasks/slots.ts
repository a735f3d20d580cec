/**
 * How many handlers of this process run at once, in all and for one principal. A handler that waits gives its place up and takes one
 * again when its wait is over, before anything new is begun.
 */
export class Slots {
  readonly #max: number;
  readonly #perPrincipal: number;
  readonly #onFree: () => void;
  readonly #byPrincipal = new Map<string, number>();
  readonly #returning: { readonly principal: string; readonly go: () => void }[] = [];
  #taken = 0;

  constructor(max: number, perPrincipal: number, onFree: () => void) {
    this.#max = max;
    this.#perPrincipal = perPrincipal;
    this.#onFree = onFree;
  }

  get free(): number {
    return Math.max(0, this.#max - this.#taken);
  }

  running(): { principal: string; tasks: number }[] {
    return [...this.#byPrincipal].map(([principal, tasks]) => ({ principal, tasks }));
  }

  /** A place for something new, if there is one. */
  tryTake(principal: string): boolean {
    if (this.free === 0 || (this.#byPrincipal.get(principal) ?? 0) >= this.#perPrincipal) return false;
    this.#taken += 1;
    this.#count(principal, 1);
    return true;
  }

  /** Keeps up to `places` until it is known whose they will be. */
  reserve(): number {
    const places = this.free;
    this.#taken += places;
    return places;
  }

  /** Of reserved places, these are taken, and the others free again. */
  assign(reserved: number, principals: readonly string[]): void {
    this.#taken -= reserved - principals.length;
    for (const principal of principals) this.#count(principal, 1);
    this.#admit();
  }

  /** A place for what has begun before; waits for one. */
  takeAgain(principal: string): Promise<void> {
    return new Promise((resolve) => {
      this.#returning.push({ principal, go: resolve });
      this.#admit();
    });
  }

  give(principal: string): void {
    this.#taken -= 1;
    this.#count(principal, -1);
    this.#admit();
    if (this.free > 0) this.#onFree();
  }

  #admit(): void {
    while (this.free > 0) {
      const next = this.#returning.shift();
      if (next === undefined) return;
      this.#taken += 1;
      this.#count(next.principal, 1);
      next.go();
    }
  }

  #count(principal: string, by: number): void {
    const tasks = (this.#byPrincipal.get(principal) ?? 0) + by;
    if (tasks <= 0) this.#byPrincipal.delete(principal);
    else this.#byPrincipal.set(principal, tasks);
  }
}
