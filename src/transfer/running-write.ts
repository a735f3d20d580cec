/** One write of this process as the registry of active writes sees it. */
import type { ActiveWrite } from "./active-writes.ts";

/** From before its lease is taken until its request ends. */
export class RunningWrite implements ActiveWrite {
  readonly handle: string;
  fence = 0;
  finish: () => void = () => {};
  readonly finished: Promise<void>;
  #body: { lastByteAt: number; stop(): void } | null = null;
  #checkpoint: () => void = () => {};
  readonly #since = performance.now();
  #stopped = false;

  constructor(handle: string) {
    this.handle = handle;
    this.finished = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  attach({
    fence,
    body,
    checkpoint,
  }: {
    fence: number;
    body: { lastByteAt: number; stop(): void };
    checkpoint: () => void;
  }): void {
    this.fence = fence;
    this.#body = body;
    this.#checkpoint = checkpoint;
    if (this.#stopped) body.stop();
  }

  get wasStopped(): boolean {
    return this.#stopped;
  }

  lastByteAt(): number {
    return this.#body?.lastByteAt ?? this.#since;
  }

  stop(): void {
    this.#stopped = true;
    this.#body?.stop();
  }

  checkpoint(): void {
    this.#checkpoint();
  }
}
