/** Reads every stored file again: size and digest against the record. Repairs nothing, changes nothing. */
import { createHash } from "node:crypto";
import type { DigestFollower } from "../integrity/digest-follower.ts";
import type { BlobStore } from "./blob-store.ts";
import type { StoredFault, VerifyReport } from "./engine.ts";
import type { SegmentRecord, UploadRecord } from "./records.ts";
import type { TransferState } from "./state-store.ts";
import { streamStored } from "./stored-bytes.ts";

const page = 200;

interface Parts {
  readonly state: TransferState;
  readonly blobs: BlobStore;
  readonly follower: DigestFollower;
}

export async function verifyStored(
  parts: Parts,
  onFault: (fault: StoredFault) => void,
): Promise<VerifyReport> {
  let checkedFiles = 0;
  let checkedBytes = 0;
  let faults = 0;
  for (let after: string | null = null; ; ) {
    const uploads: UploadRecord[] = await parts.state.completeUploads(after, page);
    for (const upload of uploads) {
      const found = await faultOf(parts, upload);
      // What was deleted meanwhile has no fault.
      if (found !== null && (await parts.state.findUpload(upload.handle)) === null) continue;
      checkedFiles += 1;
      checkedBytes += upload.offset;
      if (found === null) continue;
      faults += 1;
      onFault({ handle: upload.handle, filename: upload.filename, ...found });
    }
    const last = uploads.at(-1);
    if (last === undefined) return { checkedFiles, checkedBytes, faults };
    after = last.handle;
  }
}

/** For what lies in no file: small, so that hashing it here holds nothing up. */
async function readThrough(
  blobs: BlobStore,
  segments: SegmentRecord[],
  upload: UploadRecord,
): Promise<Found> {
  const hash = createHash("sha256");
  for await (const piece of streamStored(blobs, segments, 0, upload.offset)) hash.update(piece as Uint8Array);
  const hex = hash.digest("hex");
  return hex === upload.sha256 ? null : digestFault(hex, upload);
}

function digestFault(hex: string, upload: UploadRecord): Found {
  return { fault: "digest", detail: `sha256 is ${hex}, recorded is ${upload.sha256}` };
}

type Found = Pick<StoredFault, "fault" | "detail"> | null;

async function faultOf({ state, blobs, follower }: Parts, upload: UploadRecord): Promise<Found> {
  const segments = await state.segments(upload.handle);
  const recorded = segments.reduce((sum, segment) => sum + segment.length, 0);
  if (recorded !== upload.sizeBytes) {
    return { fault: "size", detail: `the segments hold ${recorded} bytes, the file has ${upload.sizeBytes}` };
  }
  const key = `verify ${upload.handle}`;
  try {
    for (const segment of segments) {
      const path = blobs.path(segment.blob);
      const there = (await blobs.stat(segment.blob))?.sizeBytes ?? null;
      const need = segment.blobOffset + segment.length;
      if (there === null) return { fault: "missing", detail: `blob ${segment.blob} is not there` };
      if (there < need)
        return { fault: "missing", detail: `blob ${segment.blob} has ${there} bytes, not ${need}` };
      if (path === null) return await readThrough(blobs, segments, upload);
      follower.advance(key, path, segment.blobOffset, need);
    }
    if (upload.offset === 0) return null;
    const { hex } = await follower.digest(key);
    if (hex === upload.sha256) return null;
    return digestFault(hex, upload);
  } catch (error) {
    return {
      fault: "missing",
      detail: `the bytes cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    };
  } finally {
    follower.drop(key);
  }
}
