/** The kind `file_checksum`: digests of a stored file, all in one read of its bytes. */
import * as z from "zod";
import { TransferError } from "../../../errors.ts";
import type { TaskKind } from "../../engine.ts";
import { kindArguments } from "../kind-arguments.ts";
import { ByteProgress } from "../progress.ts";
import { digestAlgorithms } from "./digests.ts";
import { hashStream } from "./hash-stream.ts";

const checksumArguments = z.object({ handle: z.string(), algorithms: z.array(z.enum(digestAlgorithms)) });

export function fileChecksum(): TaskKind {
  return {
    kind: "file_checksum",
    restart: "whole",
    async handler(args, context) {
      const { handle, algorithms } = kindArguments(checksumArguments, args);
      const { sha256, ...result } = await context.step("digests", async ({ signal }) => {
        const file = await context.files.open(handle);
        const { filename, sizeBytes } = file.transfer;
        const size = sizeBytes ?? 0;
        const progress = new ByteProgress(context, "Read", size);
        const digests = await hashStream({
          stream: file.stream(),
          sizeBytes: size,
          algorithms: [...new Set(algorithms)],
          signal,
          onHashed: (bytes) => progress.add(bytes),
        });
        return { handle, filename, size, digests, sha256: file.transfer.sha256 };
      });
      const now = result.digests.sha256;
      if (now !== undefined && now !== sha256) throw spoilt(now, sha256);
      return result;
    },
  };
}

/** Telling the digests of spoilt bytes as those of the file would make them look right. */
function spoilt(now: string, before: string | null): TransferError {
  return new TransferError(
    "checksum_mismatch",
    `The stored bytes have the sha256 ${now}; when they came it was ${before}.`,
    {
      status: 422,
      retryable: false,
      recoveryHint: "Tell the operator: the disk has changed the file. Upload it again with upload_create.",
    },
  );
}
