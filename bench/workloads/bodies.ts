/** Large uploads: one request, many, many at once; and the ones whose memory is what counts. */
import { type BodyRequest, type BodyResult, type BodySource, sendBodies } from "../client.ts";
import { chunkedPatchHead, chunkedPutHead, patchHead, putHead } from "../http-text.ts";
import type { RunningServer } from "../processes.ts";
import type { Scale } from "../scale.ts";
import type { ServerId } from "../servers.ts";
import type { Source } from "../source.ts";
import { checkStored, type Slice } from "../stored-files.ts";
import { awaitUpload, createUpload } from "../tus-uploads.ts";
import { type AnyWorkload, type Outcome, type RunContext, workload } from "../workload.ts";

const receivers: readonly ServerId[] = ["a", "b", "c", "d", "e", "f", "g"];
const mb = 1e6;

const fileSlice = (path: string, slice: Slice): BodySource => ({ kind: "file", path, ...slice });

const slicesOf = (count: number, bytes: number): Slice[] =>
  Array.from({ length: count }, (_, index) => ({ offset: index * bytes, bytes }));

function requireSuccess(server: RunningServer, result: BodyResult): void {
  for (const { status, head } of result.answers.flat())
    if (status !== 204 && status !== 201) throw new Error(`${server.kind.label} answered ${head}`);
}

/** One upload for each slice, all at once, each in one request. */
async function uploadSlices(
  server: RunningServer,
  path: string,
  slices: readonly Slice[],
): Promise<Uploaded> {
  if (server.kind.door === "put") {
    const requests = slices.map((slice, index) => [
      { head: putHead(`/upload-${index}`, slice.bytes), send: fileSlice(path, slice) },
    ]);
    return { paths: [], result: await sendBodies(server.port, requests) };
  }
  const paths = await Promise.all(slices.map(({ bytes }) => createUpload(server, bytes)));
  const requests = slices.map((slice, index) => [
    { head: patchHead(paths[index] ?? "", 0, slice.bytes), send: fileSlice(path, slice) },
  ]);
  return { paths, result: await sendBodies(server.port, requests) };
}

interface Uploaded {
  readonly paths: readonly string[];
  readonly result: BodyResult;
}

/** @param digest of the whole, where there is one upload. */
async function finish(
  server: RunningServer,
  { paths, result }: Uploaded,
  bytes: number,
  digest: string | null,
  stored: () => void,
): Promise<Outcome> {
  requireSuccess(server, result);
  for (const path of paths) {
    const state = await awaitUpload(server, path);
    if (paths.length === 1 && state.offset !== bytes)
      throw new Error(`${server.kind.label} has ${state.offset} of ${bytes} bytes`);
    if (server.kind.tellsDigest && digest !== null && state.digest !== digest)
      throw new Error(`${server.kind.label} found another digest`);
  }
  return { seconds: result.seconds, amount: bytes / mb, clientCpuSeconds: result.cpuSeconds, check: stored };
}

function pieces(path: string | null, source: Source, size: number, pieceBytes: number): BodyRequest[] {
  return slicesOf(size / pieceBytes, pieceBytes).map((slice, index) => ({
    head:
      path === null ? putHead(`/piece-${index}`, slice.bytes) : patchHead(path, slice.offset, slice.bytes),
    send: fileSlice(source.path, slice),
  }));
}

const large = {
  media: ["tmpfs", "disk"],
  reference: "c",
  unit: "MB/s",
  memoryRounds: null,
  keepsFiles: false,
  prepare: async () => null,
} as const;

const sizeText = (bytes: number): string =>
  bytes >= 2 ** 30 ? `${bytes / 2 ** 30} GiB` : `${bytes / 2 ** 20} MiB`;

const onePatch = workload({
  ...large,
  name: "one-patch",
  title: ({ fileBytes }: Scale) => `${sizeText(fileBytes)} in one PATCH (e, f, g: PUT)`,
  servers: receivers,
  async run(server: RunningServer, { scale, source, isWarmUp }: RunContext) {
    const slices = slicesOf(1, isWarmUp ? scale.fileBytes / 8 : scale.fileBytes);
    const [{ bytes }] = slices as [Slice];
    const uploaded = await uploadSlices(server, source.path, slices);
    return finish(server, uploaded, bytes, isWarmUp ? null : source.digest, () =>
      checkStored(server, source, slices),
    );
  },
});

const patches = workload({
  ...large,
  name: "patches",
  title: ({ fileBytes, patchBytes }: Scale) =>
    `${sizeText(fileBytes)} in PATCHes of ${sizeText(patchBytes)} (e, f, g: PUT of a file each)`,
  servers: receivers,
  async run(server: RunningServer, { scale, source, isWarmUp }: RunContext) {
    const bytes = isWarmUp ? scale.fileBytes / 8 : scale.fileBytes;
    const path = server.kind.door === "put" ? null : await createUpload(server, bytes);
    const result = await sendBodies(server.port, [pieces(path, source, bytes, scale.patchBytes)]);
    const slices = path === null ? slicesOf(bytes / scale.patchBytes, scale.patchBytes) : slicesOf(1, bytes);
    const uploaded = { paths: path === null ? [] : [path], result };
    return finish(server, uploaded, bytes, isWarmUp ? null : source.digest, () =>
      checkStored(server, source, slices),
    );
  },
});

const streams = workload({
  ...large,
  name: "streams",
  title: (scale: Scale) => `${scale.streams} uploads of ${sizeText(scale.streamBytes)} at once`,
  servers: receivers,
  async run(server: RunningServer, { scale, source, isWarmUp }: RunContext) {
    const slices = slicesOf(scale.streams, isWarmUp ? scale.streamBytes / 8 : scale.streamBytes);
    const uploaded = await uploadSlices(server, source.path, slices);
    const total = slices.reduce((sum, { bytes }) => sum + bytes, 0);
    return finish(server, uploaded, total, null, () => checkStored(server, source, slices));
  },
});

const memory = { ...large, media: ["tmpfs"], servers: ["a", "b", "c", "f"], memoryRounds: 2 } as const;

const huge = workload({
  ...memory,
  name: "memory-huge",
  title: ({ hugeBytes }: Scale) => `memory: ${sizeText(hugeBytes)} in one PATCH`,
  media: ["disk"],
  servers: ["a", "c"],
  memoryRounds: 1,
  async run(server: RunningServer, { scale, sparsePath }: RunContext) {
    const uploaded = await uploadSlices(server, sparsePath, slicesOf(1, scale.hugeBytes));
    return finish(server, uploaded, scale.hugeBytes, null, () => {});
  },
});

const many = workload({
  ...memory,
  name: "memory-many",
  title: (scale: Scale) => `memory: ${scale.manyUploads} uploads of ${sizeText(scale.manyBytes)} at once`,
  async run(server: RunningServer, { scale, source }: RunContext) {
    // All of them send the same bytes: what differs is only who.
    const slices = Array.from({ length: scale.manyUploads }, () => ({ offset: 0, bytes: scale.manyBytes }));
    const uploaded = await uploadSlices(server, source.path, slices);
    const total = scale.manyUploads * scale.manyBytes;
    return finish(server, uploaded, total, null, () =>
      checkStored(server, source, slices.slice(0, 1), scale.manyUploads),
    );
  },
});

const singleBytes = workload({
  ...memory,
  name: "memory-single-bytes",
  title: ({ singleBytes: bytes }: Scale) => `memory: ${bytes / 1024} KiB in chunks of one byte`,
  async run(server: RunningServer, { scale }: RunContext) {
    const bytes = scale.singleBytes;
    const path = server.kind.door === "put" ? null : await createUpload(server, bytes);
    const head = path === null ? chunkedPutHead("/single") : chunkedPatchHead(path);
    const result = await sendBodies(server.port, [[{ head, send: { kind: "single-bytes", bytes } }]]);
    return finish(server, { paths: path === null ? [] : [path], result }, bytes, null, () => {});
  },
});

export const bodyWorkloads: readonly AnyWorkload[] = [onePatch, patches, streams];
export const memoryWorkloads: readonly AnyWorkload[] = [many, singleBytes, huge];
