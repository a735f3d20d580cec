/** Checked without the types of Node, as a page's project would. */
import { createUpload, type Progress, TransferFailure, type Uploaded, upload } from "longshore/client";

export async function send(file: File, show: (progress: Progress) => void): Promise<Uploaded | string> {
  try {
    const url = await createUpload(location.origin, { filename: file.name, sizeBytes: file.size });
    return await upload(url, file, { onProgress: show, signal: AbortSignal.timeout(60_000) });
  } catch (error) {
    return error instanceof TransferFailure ? `${error.code}: ${error.recoveryHint ?? ""}` : String(error);
  }
}
