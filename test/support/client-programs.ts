/** Programs that upload: curl, tuspy, tus-js-client. Each is used as its users use it. */
import { execFile, execFileSync } from "node:child_process";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { Upload, type UploadOptions } from "tus-js-client";
import { cleanEnv } from "./built-server.ts";

const run = promisify(execFile);

export interface ProgramEnd {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Never rejects for an exit status. */
export async function program(command: string, args: readonly string[], cwd?: string): Promise<ProgramEnd> {
  try {
    const { stdout, stderr } = await run(command, [...args], {
      timeout: 120_000,
      env: cleanEnv(),
      ...(cwd !== undefined && { cwd }),
    });
    return { status: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: number | string; stdout?: string; stderr?: string };
    if (typeof code !== "number") throw error;
    return { status: code, stdout: stdout ?? "", stderr: stderr ?? "" };
  }
}

export const curl = (...args: readonly string[]): Promise<ProgramEnd> => program("curl", ["-sS", ...args]);

const python = "/usr/bin/python3";

/** Why tuspy cannot be used here; null where it can. */
export function whyNoTuspy(): string | null {
  try {
    execFileSync(python, ["-c", "import tusclient.client"], { stdio: "ignore" });
    return null;
  } catch {
    return "the Debian package python3-tuspy is not installed";
  }
}

const tuspyScript = `
import sys
from tusclient import client
endpoint, url, path, chunk, stop_at, name = sys.argv[1:7]
uploader = client.TusClient(endpoint).uploader(
    path, url=url or None, chunk_size=int(chunk), metadata={"filename": name}, retries=0)
uploader.upload(stop_at=int(stop_at) if stop_at else None)
print(uploader.url)
print(uploader.offset)
`;

export interface TuspyUpload {
  readonly endpoint: string;
  /** Goes on with this upload; else it makes one. */
  readonly url?: string;
  readonly path: string;
  readonly chunkBytes: number;
  readonly stopAt?: number;
  readonly filename?: string;
}

export async function tuspy(upload: TuspyUpload): Promise<{ url: string; offset: number }> {
  const { endpoint, url = "", path, chunkBytes, stopAt = "", filename = "tuspy.bin" } = upload;
  const args = [endpoint, url, path, chunkBytes, stopAt, filename].map(String);
  const { status, stdout, stderr } = await program(python, ["-c", tuspyScript, ...args]);
  if (status !== 0) throw new Error(`tuspy ended with ${status}: ${stderr}`);
  const [reached = "", offset = ""] = stdout.trim().split("\n");
  return { url: reached, offset: Number(offset) };
}

export type TusOptions = Partial<Omit<UploadOptions, "onSuccess" | "onError">> & {
  /** May end the upload. */
  readonly onBytes?: (upload: Upload, acknowledged: number) => void;
};

/** Resolves with the upload's URL once tus-js-client says that it has succeeded. */
export function tusJs(file: Buffer | Readable, options: TusOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const { onBytes, ...rest } = options;
    const upload = new Upload(file as ConstructorParameters<typeof Upload>[0], {
      retryDelays: null,
      ...rest,
      ...(onBytes !== undefined && {
        onChunkComplete: (_size: number, acknowledged: number) => onBytes(upload, acknowledged),
      }),
      onError: reject,
      onSuccess: () => resolve(upload.url ?? ""),
    });
    upload.start();
  });
}
