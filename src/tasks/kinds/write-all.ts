/** Writing into streams of streamx, the stream library of tar-stream, which Node's `pipeline` does not know. */

interface Sink {
  readonly destroyed: boolean;
  write(piece: Uint8Array): boolean;
  end(last: null): unknown;
  once(event: "drain" | "close", listener: () => void): unknown;
}

/** All pieces and the end, no faster than they are taken. Resolves early where the sink is destroyed. */
export async function writeAll(pieces: AsyncIterable<Uint8Array>, sink: Sink): Promise<void> {
  for await (const piece of pieces) {
    if (sink.destroyed) return;
    if (!sink.write(piece)) {
      await new Promise<void>((go) => {
        sink.once("drain", go);
        sink.once("close", go);
      });
    }
  }
  if (!sink.destroyed) sink.end(null);
}
