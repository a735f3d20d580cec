import { expect, it } from "vitest";
import type { SegmentRecord, UploadRecord } from "../../../src/transfer/records.ts";
import type { TransferState } from "../../../src/transfer/state-store.ts";
import {
  beginOf,
  commitOf,
  found,
  hourMs,
  newBlob,
  newConcatenation,
  newTicket,
  newUpload,
  type StateUnderTest,
} from "./fixture.ts";

/** Numbers that are the same in each run (mulberry32), so that a failure comes back. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below);
  };
}

interface Lease {
  readonly upload: UploadRecord;
  readonly segment: SegmentRecord;
}

const principals = ["ada", "bob"];

export function randomWalk(under: () => StateUnderTest): void {
  it.each([1, 2, 3, 4])(
    "whatever is done in whatever order, sums, offsets and blobs stay true (seed %i)",
    async (seed) => {
      const { state, other, recount, passTime } = under();
      const below = seeded(seed);
      const pick = <T>(list: readonly T[]): T | undefined => list[below(list.length)];
      const handles: string[] = [];
      const leases: Lease[] = [];

      const steps: ((store: TransferState) => Promise<unknown>)[] = [
        async (store) => {
          const sizeBytes = below(2) === 0 ? null : below(500);
          const begin = below(2) === 0 ? null : { owner: `p_${below(3)}`, blob: newBlob() };
          const principal = pick(principals) ?? "ada";
          const quota = { maxBytes: 3_000, maxFiles: 12 };
          const ttlMs = below(3) === 0 ? hourMs : null;
          const outcome = await store.createUpload(newUpload({ principal, sizeBytes, begin, quota, ttlMs }));
          if (outcome.kind !== "created") return;
          handles.push(outcome.upload.handle);
          if (outcome.segment !== null) leases.push({ upload: outcome.upload, segment: outcome.segment });
        },
        async (store) => {
          const view = await store.findUpload(pick(handles) ?? "");
          if (view === null) return;
          const { upload } = view;
          const outcome = await store.beginWrite(
            beginOf(upload, {
              owner: `p_${below(3)}`,
              takeOverFence: below(2) === 0 ? upload.fence : null,
              declareSize: below(4) === 0 ? upload.offset + below(300) : null,
              quota: { maxBytes: 3_000, maxFiles: null },
            }),
          );
          if (outcome.kind === "ok") leases.push(outcome);
        },
        async (store) => {
          const lease = pick(leases);
          if (lease === undefined) return;
          const view = await store.findUpload(lease.upload.handle);
          const known = view?.upload.sizeBytes ?? null;
          const rows = await store.segments(lease.upload.handle);
          const had =
            rows.find(({ seq, fence }) => seq === lease.segment.seq && fence === lease.segment.fence)
              ?.length ?? 0;
          const room = known === null ? 200 : known - lease.segment.start - had;
          const length = had + below(Math.max(1, room + 1));
          const end = lease.segment.start + length;
          const done = known === null ? below(3) === 0 : end === known;
          const status = done
            ? ((["complete", "mismatch", "verifying"] as const)[below(3)] ?? "complete")
            : "receiving";
          await store
            .commitWrite(
              commitOf(lease, length, {
                active: below(2) === 0,
                sizeBytes: known === null && done ? end : null,
                status,
                sha256: done ? "f".repeat(64) : null,
                ttlMs: below(3) === 0 ? hourMs : null,
                quota: { maxBytes: 3_000, maxFiles: null },
              }),
            )
            // Asked for more than the record, which has moved on since, can take.
            .catch((error: unknown) => expect(String(error)).not.toMatch(/storage/));
        },
        async (store) => {
          const parts: { handle: string; hash: string }[] = [];
          for (const length of [below(200), 0, below(200)]) {
            const ticket = newTicket();
            const made = await store.createUpload(
              newUpload({
                sizeBytes: length,
                concat: "partial",
                ticket,
                begin: { owner: "p_0", blob: newBlob() },
              }),
            );
            if (made.kind !== "created" || made.segment === null) return;
            const lease = { upload: made.upload, segment: made.segment };
            await store.commitWrite(commitOf(lease, below(5) === 0 ? 0 : length, { ttlMs: hourMs }));
            parts.push({ handle: made.upload.handle, hash: ticket.hash });
          }
          handles.push(...parts.map(({ handle }) => handle));
          const input = newConcatenation({ partials: parts.map(({ hash }) => hash) });
          const outcome = await store.concatenate(input);
          if (outcome.kind === "created") handles.push(input.handle);
        },
        (store) => store.removeUpload(pick(handles) ?? "", null),
        (store) => store.startOver(pick(handles) ?? "", newTicket(), hourMs),
        async (store) => {
          const view = await store.findUpload(pick(handles) ?? "");
          if (view?.upload.leaseActive === true)
            await store.adoptOrphan(view.upload.handle, view.upload.fence, below(100));
        },
        async (store) => {
          const view = await store.findUpload(pick(handles) ?? "");
          if (view?.upload.status !== "complete") return;
          const { handle, generation, offset } = view.upload;
          await store.replaceSegments(handle, generation, { blob: newBlob(), length: offset });
        },
        async (store) => {
          const view = await store.findUpload(pick(handles) ?? "");
          const verdict = {
            status: pick(["complete", "mismatch"] as const) ?? "complete",
            sha256: "a".repeat(64),
            ttlMs: null,
          };
          if (view !== null) await store.settle(view.upload.handle, view.upload.generation, verdict);
        },
        (store) => store.removeProcess(`p_${below(3)}`),
        (store) => store.claimVerifications("p_0", ["p_1"], 2),
        async (store) => {
          await passTime(below(2) * hourMs);
          await store.expire(0, 2);
        },
      ];

      for (let round = 0; round < 400; round += 1) {
        // The first three make the traffic; the others only happen.
        const step = below(10) < 7 ? steps[below(3)] : pick(steps);
        await step?.(round % 3 === 0 ? other : state);
        if (round % 20 !== 19) continue;
        for (const principal of principals)
          expect(await state.usage(principal)).toEqual(await recount(principal));
        const named: string[] = [];
        for (const handle of handles) {
          if ((await state.findUpload(handle)) === null) continue;
          const upload = await found(state, handle);
          const rows = await state.segments(handle);
          let end = 0;
          for (const { start, length, blob } of rows) {
            expect(start).toBe(end);
            end += length;
            named.push(blob);
          }
          expect(upload.offset).toBe(end);
          if (upload.sizeBytes !== null) expect(end).toBeLessThanOrEqual(upload.sizeBytes);
          if (upload.status !== "receiving") expect(end).toBe(upload.sizeBytes);
        }
        const garbage = new Set(await state.garbage(0, 1_000));
        expect(named.filter((blob) => garbage.has(blob))).toEqual([]);
        expect(await state.unknownBlobs(named.slice(0, 1_000))).toEqual([]);
      }
      expect(handles.length).toBeGreaterThan(12);
    },
  );
}
