/** A file of random bytes, made and hashed piece by piece. */
import { createHash, randomBytes } from "node:crypto";
import { open } from "node:fs/promises";

/** Writes `sizeBytes` (whole MiB) and returns their sha256. */
export async function makeSampleFile(path: string, sizeBytes: number): Promise<string> {
  const hash = createHash("sha256");
  const file = await open(path, "wx");
  try {
    for (let written = 0; written < sizeBytes; written += 2 ** 20) {
      const piece = randomBytes(2 ** 20);
      hash.update(piece);
      await file.write(piece);
    }
  } finally {
    await file.close();
  }
  return hash.digest("hex");
}

/** sha256 and size of a response's body, which is kept nowhere. */
export async function digestOf(
  body: AsyncIterable<Uint8Array>,
): Promise<{ sizeBytes: number; sha256: string }> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  for await (const piece of body) {
    hash.update(piece);
    sizeBytes += piece.byteLength;
  }
  return { sizeBytes, sha256: hash.digest("hex") };
}
