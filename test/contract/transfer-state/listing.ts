import { expect, it } from "vitest";
import type { UploadRecord } from "../../../src/transfer/records.ts";
import type { ListQuery, TransferStatusFilter } from "../../../src/transfer/state-store.ts";
import { begun, created, finished, hourMs, type StateUnderTest } from "./fixture.ts";

export function listing(under: () => StateUnderTest): void {
  const page = async (more: Partial<ListQuery> = {}): Promise<UploadRecord[]> => {
    const query = { principal: "ada", status: null, limit: 100, after: null, ...more };
    return (await under().state.listUploads(query)).uploads;
  };
  const handles = (uploads: readonly UploadRecord[]): string[] => uploads.map(({ handle }) => handle);
  const inOrder = (uploads: readonly UploadRecord[]): string[] =>
    handles([...uploads].sort((a, b) => a.createdAt - b.createdAt || (a.handle < b.handle ? -1 : 1)));

  /** All pages, one after the other. */
  const walk = async (
    limit: number,
    between: () => Promise<void>,
    status: TransferStatusFilter | null = null,
  ) => {
    const seen: UploadRecord[] = [];
    let after: ListQuery["after"] = null;
    for (;;) {
      const uploads = await page({ limit, after, status });
      seen.push(...uploads);
      const last = uploads.at(-1);
      if (last === undefined) return seen;
      after = { createdAt: last.createdAt, handle: last.handle };
      await between();
    }
  };

  it("a list has the principal's own records in the order of creation and handle, without partial uploads", async () => {
    const { state } = under();
    const uploads = [];
    for (let index = 0; index < 4; index += 1) uploads.push(await created(state));
    uploads.push(await finished(state, "complete"), await created(state, { concat: "final" }));
    await created(state, { concat: "partial" });
    await created(state, { principal: "bob" });
    expect(handles(await page())).toEqual(inOrder(uploads));
    expect(handles(await page({ limit: 3 }))).toEqual(inOrder(uploads).slice(0, 3));
    expect(await page({ principal: "nobody" })).toEqual([]);
  });

  it("records made in one instant are all listed, page by page", async () => {
    const { state } = under();
    const uploads = await Promise.all(Array.from({ length: 50 }, () => created(state)));
    expect(handles(await walk(7, async () => {}))).toEqual(inOrder(uploads));
  });

  it("a cursor stays good while records come, go and change", async () => {
    const { state } = under();
    const uploads: UploadRecord[] = [];
    for (let index = 0; index < 20; index += 1) uploads.push(await created(state));
    const order = inOrder(uploads);
    const [goneSeen, goneUnseen] = [order[1] ?? "", order[18] ?? ""];
    let rounds = 0;
    const seen = await walk(4, async () => {
      rounds += 1;
      if (rounds === 1) {
        await state.removeUpload(goneSeen, null);
        await state.removeUpload(order[3] ?? "", null); // the cursor itself
        await state.removeUpload(goneUnseen, null);
        const lease = await begun(
          state,
          uploads.find(({ handle }) => handle === order[10]) ?? uploads[0] ?? never(),
        );
        await state.releaseWrite(lease.upload.handle, "p_one", lease.upload.fence);
      }
      if (rounds < 3) await created(state);
    });
    const firstSeen = handles(seen).slice(0, 19);
    expect(firstSeen).toEqual(order.filter((handle) => handle !== goneUnseen));
    expect(seen).toHaveLength(21);
    expect(new Set(handles(seen)).size).toBe(21);
  });

  it("a status lists the records of this status that have not expired", async () => {
    const { state, passTime } = under();
    const expired = [
      await created(state, { ttlMs: hourMs }),
      await created(state, { ttlMs: hourMs }),
      await created(state, { ttlMs: hourMs }),
    ];
    const busy = await begun(state, await created(state, { ttlMs: hourMs }));
    await passTime(hourMs);
    await state.expire(hourMs, 1); // marked or not makes no difference
    const receiving = await created(state);
    const complete = await finished(state, "complete");
    const mismatch = await finished(state, "mismatch");
    const verifying = await finished(state, "verifying");
    await created(state, { concat: "partial" });
    expect(handles(await page({ status: "receiving" }))).toEqual(
      inOrder([receiving, busy.upload])
        .reverse()
        .sort((a, b) => (a === busy.upload.handle ? -1 : b === busy.upload.handle ? 1 : 0)),
    );
    expect(handles(await page({ status: "complete" }))).toEqual([complete.handle]);
    expect(handles(await page({ status: "mismatch" }))).toEqual([mismatch.handle]);
    expect(handles(await page({ status: "verifying" }))).toEqual([verifying.handle]);
    expect(handles(await page({ status: "expired" })).sort()).toEqual(handles(expired).sort());
    expect(await page({ status: "expired", principal: "bob" })).toEqual([]);
    expect(await page()).toHaveLength(8);
  });

  it("the complete ones of all principals are gone through in the order of their handles, partials included", async () => {
    const { state } = under();
    const complete = [
      await finished(state, "complete"),
      await finished(state, "complete", 10, { principal: "bob" }),
      await finished(state, "complete", 10, { concat: "partial" }),
    ];
    await finished(state, "mismatch");
    await created(state);
    const order = handles(complete).sort();
    expect(handles(await state.completeUploads(null, 10))).toEqual(order);
    expect(handles(await state.completeUploads(null, 2))).toEqual(order.slice(0, 2));
    expect(handles(await state.completeUploads(order[1] ?? "", 2))).toEqual(order.slice(2));
    expect(await state.completeUploads(order[2] ?? "", 2)).toEqual([]);
  });

  it("the expired ones are listed page by page too", async () => {
    const { state, passTime } = under();
    const uploads = await Promise.all(Array.from({ length: 9 }, () => created(state, { ttlMs: hourMs })));
    await created(state);
    await passTime(hourMs);
    await state.expire(hourMs, 4);
    expect(handles(await walk(2, async () => {}, "expired"))).toEqual(inOrder(uploads));
    expect(handles(await walk(4, async () => {}, "receiving"))).toHaveLength(1);
  });
}

function never(): never {
  throw new Error("There is one");
}
