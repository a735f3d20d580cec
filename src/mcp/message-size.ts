/** How long a message of a client may be, over any transport: the largest call that the settings allow fits. */
import type { TransferLimits } from "../transfer/engine.ts";

/** Beside the base64 of a whole inline file, so that a chunk far too large still gets its envelope. */
const beside = 1 << 20;

export function maxMessageBytes({ inlineFileBytes }: TransferLimits): number {
  return beside + Math.ceil(inlineFileBytes / 3) * 4;
}
