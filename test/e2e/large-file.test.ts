/** One file of 1 GiB through the built binary, there and back: it is held in memory nowhere. */
import { createReadStream } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { tusJs } from "../support/client-programs.ts";
import { connect, facts } from "../support/mcp-clients.ts";
import { Sample } from "../support/sample.ts";
import { forgetPeakMemory, memoryOf, useServer } from "../support/server-process.ts";
import { openDownload } from "../support/slow-reader.ts";

const running = useServer();

const mebibyte = 1 << 20;
const allowedBytes = 110 * mebibyte;

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
  const download = await openDownload(String(url));
  expect(await download.sha256()).toBe(sample.sha256);
  const downloading = (await memoryOf(pid)).peak;

  console.info(
    `memory in MiB: idle ${Math.round(idle / mebibyte)}, most in the upload ${Math.round(uploading / mebibyte)}, ` +
      `in the download ${Math.round(downloading / mebibyte)}`,
  );
  expect(uploading - idle).toBeLessThanOrEqual(allowedBytes);
  expect(downloading - idle).toBeLessThanOrEqual(allowedBytes);
}, 240_000);
