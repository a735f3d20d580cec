/** One file of 1 GiB through the built binary, there and back: it is held in memory nowhere. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import path from "node:path";
import { expect, test } from "vitest";
import { tusJs } from "../support/client-programs.ts";
import { connect, facts } from "../support/mcp-server.ts";
import { Sample } from "../support/sample.ts";
import { forgetPeakMemory, memoryOf, useServer } from "../support/server-process.ts";

const running = useServer();

const mebibyte = 1 << 20;
const allowedBytes = 110 * mebibyte;

function opened(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, resolve).on("error", reject);
  });
}

test("1 GiB sent by tus-js-client in one PATCH and read back takes at most 110 MiB of memory above idle", async () => {
  const sample = new Sample("one gibibyte", 1024 * mebibyte);
  const file = path.join(running.folder, "large.bin");
  await sample.writeTo(file);
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const created = await facts(client, "upload_create", { filename: "large.bin", size: sample.sizeBytes });

  const { pid } = running.server;
  const idle = (await memoryOf(pid)).now;
  await forgetPeakMemory(pid);
  await tusJs(createReadStream(file), { uploadUrl: created.upload.tus });
  const status = await facts(client, "upload_status", { handle: created.handle, waitMs: 40_000 });
  const uploading = (await memoryOf(pid)).peak;
  expect(status).toMatchObject({ status: "complete", sha256: sample.sha256, offset: sample.sizeBytes });

  await forgetPeakMemory(pid);
  const { url } = await facts(client, "file_download", { handle: created.handle });
  const response = await opened(String(url));
  expect(response.statusCode).toBe(200);
  const hash = createHash("sha256");
  for await (const piece of response) hash.update(piece);
  expect(hash.digest("hex")).toBe(sample.sha256);
  const downloading = (await memoryOf(pid)).peak;

  console.info(
    `memory in MiB: idle ${Math.round(idle / mebibyte)}, most in the upload ${Math.round(uploading / mebibyte)}, ` +
      `in the download ${Math.round(downloading / mebibyte)}`,
  );
  expect(uploading - idle).toBeLessThanOrEqual(allowedBytes);
  expect(downloading - idle).toBeLessThanOrEqual(allowedBytes);
}, 240_000);
