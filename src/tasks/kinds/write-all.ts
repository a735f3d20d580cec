/** Writing into streams of streamx, the stream library of tar-stream, which Node's `pipeline` does not know. */

type Event = "drain" | "close";

interface Sink {
  readonly destroyed: boolean;
  write(piece: Uint8Array): boolean;
  end(last: null): unknown;
  on(event: Event, listener: () => void): unknown;
  off(event: Event, listener: () => void): unknown;
}

/** All pieces and the end, no faster than they are taken. Resolves early where the sink is destroyed. */
export async function writeAll(pieces: AsyncIterable<Uint8Array>, sink: Sink): Promise<void> {
  let go = (): void => {};
  const onReady = (): void => go();
  sink.on("drain", onReady);
  sink.on("close", onReady);
  try {
    for await (const piece of pieces) {
      if (sink.destroyed) return;
      const ready = new Promise<void>((resolve) => {
        go = resolve;
      });
      if (!sink.write(piece)) await ready;
    }
    if (!sink.destroyed) sink.end(null);
  } finally {
    sink.off("drain", onReady);
    sink.off("close", onReady);
  }
}
