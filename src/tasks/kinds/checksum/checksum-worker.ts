/** The thread that computes the digests of one file: pieces come in order, each is acknowledged, the answer follows the last. */
import { parentPort, workerData } from "node:worker_threads";
import type { ChecksumReply, ChecksumRequest } from "./checksum-messages.ts";
import { type DigestAlgorithm, Digests } from "./digests.ts";

const port = parentPort;
if (port === null) throw new Error("This file runs as a worker.");

const digests = await Digests.of(workerData as readonly DigestAlgorithm[]);
const reply = (message: ChecksumReply): void => port.postMessage(message);

port.on("message", (request: ChecksumRequest) => {
  if (request.piece === null) {
    reply({ digests: digests.hex() });
    port.close();
  } else {
    digests.update(request.piece);
    reply({ hashedBytes: request.piece.byteLength });
  }
});
