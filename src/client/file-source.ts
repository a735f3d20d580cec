/** A file on this machine as the source of an upload. Node alone. */
import { open } from "node:fs/promises";
import type { ByteSource } from "./byte-source.ts";

export async function withFileSource<T>(path: string, work: (source: ByteSource) => Promise<T>): Promise<T> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    return await work({
      sizeBytes: size,
      async read(offset, length) {
        const bytes = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
        let filled = 0;
        while (filled < bytes.length) {
          const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, offset + filled);
          if (bytesRead === 0) break;
          filled += bytesRead;
        }
        return bytes.subarray(0, filled);
      },
    });
  } finally {
    await file.close();
  }
}
