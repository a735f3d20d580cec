import { expect, it } from "vitest";
import type { NewTicket } from "../../../src/transfer/state-store.ts";
import { created, finished, hourMs, newTicket, newUpload, type StateUnderTest } from "./fixture.ts";

export function tickets(under: () => StateUnderTest): void {
  /** Of these tickets, those that still open something. */
  const valid = async (given: readonly NewTicket[]): Promise<NewTicket[]> => {
    const views = await Promise.all(given.map(({ hash }) => under().state.findByTicket(hash)));
    return given.filter((_, index) => views[index] !== null);
  };

  it("of each kind the newest 16 tickets of a record stay, even when they are made in one instant", async () => {
    const { state } = under();
    const first = newTicket();
    const upload = await created(state, { ticket: first });
    const uploads = [first, ...Array.from({ length: 20 }, () => newTicket())];
    const downloads = Array.from({ length: 18 }, () => newTicket({ kind: "download", ttlMs: hourMs }));
    await Promise.all(uploads.slice(1).map((ticket) => state.addTicket(upload.handle, "ada", ticket)));
    expect(await valid(uploads)).toEqual(uploads.slice(-16));
    await Promise.all(downloads.map((ticket) => state.addTicket(upload.handle, null, ticket)));
    expect(await valid(uploads)).toEqual(uploads.slice(-16));
    expect(await valid(downloads)).toEqual(downloads.slice(-16));
  });

  it("tickets added by a repeated creation count among the 16", async () => {
    const { state } = under();
    const idempotency = { tool: "upload_create", key: "k", argumentsHash: "a".repeat(64) };
    const given = Array.from({ length: 19 }, () => newTicket());
    for (const ticket of given) await state.createUpload(newUpload({ ticket, idempotency }));
    expect(await valid(given)).toEqual(given.slice(-16));
  });

  it("a ticket has the life that was asked for and the record's generation", async () => {
    const { state } = under();
    const upload = await created(state);
    const ticket = newTicket({ kind: "download", ttlMs: hourMs });
    const added = await state.addTicket(upload.handle, "ada", ticket);
    expect(added?.upload).toEqual(upload);
    const view = await state.findByTicket(ticket.hash);
    expect(view?.ticket).toEqual({
      hash: ticket.hash,
      handle: upload.handle,
      kind: "download",
      generation: upload.generation,
      createdAt: added?.now,
      expiresAt: (added?.now ?? 0) + hourMs,
    });
  });

  it("no ticket is added for another principal or an unknown handle", async () => {
    const { state } = under();
    const upload = await created(state);
    const ticket = newTicket();
    expect(await state.addTicket(upload.handle, "bob", ticket)).toBeNull();
    expect(await state.addTicket("fh_none", null, ticket)).toBeNull();
    expect(await state.findByTicket(ticket.hash)).toBeNull();
  });

  it("a ticket past its time is still found until it is swept, since its life is the caller's to judge", async () => {
    const { state, passTime } = under();
    const upload = await finished(state, "complete");
    const ticket = newTicket({ kind: "download", ttlMs: hourMs });
    await state.addTicket(upload.handle, null, ticket);
    await passTime(2 * hourMs);
    const view = await state.findByTicket(ticket.hash);
    expect(view?.ticket.expiresAt).toBeLessThan(view?.now ?? 0);
  });

  it("stale download tickets are removed after the grace, at most so many, and no others", async () => {
    const { state, passTime } = under();
    const upload = await created(state);
    const stale = [1, 2, 3].map(() => newTicket({ kind: "download", ttlMs: hourMs }));
    const kept = [
      newTicket({ kind: "download", ttlMs: 10 * hourMs }),
      newTicket({ kind: "download" }),
      newTicket({ ttlMs: hourMs }),
    ];
    for (const ticket of [...stale, ...kept]) await state.addTicket(upload.handle, null, ticket);
    await passTime(2 * hourMs - 60_000);
    expect(await state.removeStaleTickets(hourMs, 10)).toBe(0);
    await passTime(120_000);
    expect(await state.removeStaleTickets(hourMs, 2)).toBe(2);
    expect(await state.removeStaleTickets(hourMs, 2)).toBe(1);
    expect(await valid([...stale, ...kept])).toEqual(kept);
  });
}
