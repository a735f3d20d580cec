/** A download that is begun and not read on. */
import { createHash } from "node:crypto";
import { get, type IncomingMessage } from "node:http";

export interface SlowReader {
  readonly response: IncomingMessage;
  /** Reads all of it after all. */
  sha256(): Promise<string>;
  destroy(): void;
}

/** Resolves with the head of the answer; nothing of the body is taken. */
export async function openDownload(url: string): Promise<SlowReader> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent: false }, resolve).on("error", reject);
  });
  if (response.statusCode !== 200) throw new Error(`the download was answered with ${response.statusCode}`);
  return {
    response,
    async sha256() {
      const hash = createHash("sha256");
      for await (const piece of response) hash.update(piece);
      return hash.digest("hex");
    },
    destroy: () => void response.destroy(),
  };
}
