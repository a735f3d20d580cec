/**
 * Care of a store by any number of processes at once: what the dead left behind, what is past its time, and files that nothing names.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../log.ts";
import type { BlobStore } from "./blob-store.ts";
import type { Completion } from "./completion.ts";
import type { Contention } from "./contention.ts";
import type { SweepReport } from "./engine.ts";
import type { ProcessRecord } from "./records.ts";
import type { IdlePage, Liveness, TransferState } from "./state-store.ts";

/** Between the first look and the second, and between the last reference to a blob and its removal: a jump of the clock loses nothing. */
const graceMs = 3_600_000;
/** With less free space than this a disk is full, however small the reserve. */
const fullBelowBytes = 16 << 20;
/** Below the reserve of free space, blobs without a reference go after this much already: deleting must be able to make room. */
const shortGraceMs = 60_000;
/** What was written so long before a process was last heard of is on the disk, whatever that had promised. */
const suspectMs = 600_000;
const batch = 200;
/** On a full disk, where each transaction has only the space that is held back. */
const tightBatch = 20;
/** Rounds of `batch` one sweep does at most; the next goes on. */
const maxRounds = 500;
/** Pieces of space that one sweep gives back at most, and the pause between two: others write meanwhile. */
const maxPieces = 2_000;
const pieceGapMs = 5;

/** Whether a disk with so much free space is short of it: less than the reserve, or too little whatever that is. */
export const isTight = (freeBytes: number, minFreeBytes: number): boolean =>
  freeBytes < Math.max(minFreeBytes, fullBelowBytes);

export interface Recovery {
  /** Processes found dead. */
  readonly deadProcesses: number;
  /** Uploads whose write a dead process left open. */
  readonly adoptedUploads: number;
  /** Uploads that nobody was writing and of which bytes were missing: their offset went back to what is there. */
  readonly tornUploads: number;
  /** Finished uploads whose digest is now being computed here. */
  readonly verificationsTakenOver: number;
}

interface Parts {
  readonly state: TransferState;
  readonly blobs: BlobStore;
  readonly liveness: Liveness;
  readonly contention: Contention;
  readonly completion: Completion;
  readonly minFreeBytes: number;
  readonly log: Log;
}

export class Care {
  readonly #parts: Parts;
  #reconciled = false;
  #sweeping: Promise<SweepReport> | null = null;
  #closed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Brings state and bytes to agree after processes died. */
  async recover(): Promise<Recovery> {
    const { state, liveness, contention, completion, log } = this.#parts;
    const { processes } = await state.processes();
    const dead: string[] = [];
    for (const { id } of processes)
      if (id !== liveness.processId && (await liveness.isDead(id))) dead.push(id);
    let adoptedUploads = 0;
    if (dead.length > 0) {
      for (let round = 0; round < maxRounds; round += 1) {
        const orphans = await state.orphans(dead, batch);
        for (const { upload } of orphans) await contention.adopt(upload);
        adoptedUploads += orphans.length;
        if (orphans.length < batch) break;
      }
    }
    const tornUploads = dead.length === 0 ? 0 : await this.#repairIdle(processes, dead);
    // One of this process's own that failed before (an unreadable disk) is tried again too.
    const owners = [...dead, liveness.processId];
    const claimed = (await state.claimVerifications(liveness.processId, owners, batch)).filter(
      (upload) => !completion.isVerifying(upload.handle),
    );
    for (const upload of claimed) {
      // Without its bytes it would never come to an end; with its true offset its client goes on.
      if (upload.concat !== "whole" || !(await contention.repair(upload))) void completion.start(upload);
    }
    for (const id of dead) await state.removeProcess(id);
    const recovery = {
      deadProcesses: dead.length,
      adoptedUploads,
      tornUploads,
      verificationsTakenOver: claimed.length,
    };
    if (dead.length > 0 || claimed.length > 0) log({ level: "info", event: "store.recovered", ...recovery });
    return recovery;
  }

  /**
   * What dead processes had acknowledged is there, unless the machine died with them and its disk had confirmed a sync that it had not
   * done. Only the last minutes can be lost that way, so only uploads of that time are looked at: one look at each of their files.
   */
  async #repairIdle(processes: readonly ProcessRecord[], dead: readonly string[]): Promise<number> {
    const { state, contention } = this.#parts;
    const lastSeen = processes.filter(({ id }) => dead.includes(id)).map(({ seenAt }) => seenAt);
    const since = Math.min(...lastSeen) - suspectMs;
    let torn = 0;
    for (let after: IdlePage["next"] = null; ; ) {
      const page: IdlePage = await state.idleUploads(dead, since, after, batch);
      const repaired = await Promise.all(page.uploads.map((upload) => contention.repair(upload)));
      torn += repaired.filter(Boolean).length;
      if (page.next === null) return torn;
      after = page.next;
    }
  }

  sweep(): Promise<SweepReport> {
    this.#sweeping ??= this.#sweepNow().finally(() => {
      this.#sweeping = null;
    });
    return this.#sweeping;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#sweeping?.catch(() => {});
  }

  async #sweepNow(): Promise<SweepReport> {
    const { state, blobs, minFreeBytes, log } = this.#parts;
    const { adoptedUploads: adoptedOrphans } = await this.recover();
    const tight = isTight(await blobs.freeBytes(), minFreeBytes);
    const limit = tight ? tightBatch : batch;
    let markedExpired = 0;
    let removedUploads = 0;
    for (let round = 0; round < maxRounds && !this.#closed; round += 1) {
      const { marked, unmarked, removed } = await state.expire(graceMs, limit);
      markedExpired += marked;
      removedUploads += removed.length;
      if (marked < limit && unmarked < limit && removed.length < limit) break;
    }
    await state.removeStaleTickets(graceMs, tight ? tightBatch : 1000);
    if (!this.#reconciled) {
      await this.#listUnnamed();
      this.#reconciled = true;
    }
    const grace = tight ? shortGraceMs : graceMs;
    let removedBlobs = 0;
    for (let round = 0; round < maxRounds && !this.#closed; round += 1) {
      const names = await state.garbage(grace, limit);
      for (const name of names) await blobs.remove(name);
      await state.forgetGarbage(names);
      removedBlobs += names.length;
      if (names.length < limit) break;
    }
    const left = await state.garbageLeft();
    const waitsUntil = left.since === null ? null : new Date(left.since + grace);
    const counts = { markedExpired, removedUploads, removedBlobs, adoptedOrphans };
    if (markedExpired + removedUploads + removedBlobs > 0)
      log({ level: "info", event: "store.swept", ...counts });
    await this.#giveBackSpace(tight);
    return { ...counts, waitingBlobs: left.blobs, waitsUntil };
  }

  async #giveBackSpace(all: boolean): Promise<void> {
    for (let piece = 0; piece < maxPieces && !this.#closed; piece += 1) {
      if (!(await this.#parts.state.giveBackSpace(all))) return;
      await sleep(pieceGapMs);
    }
  }

  /**
   * Files that no record names, once for each process: a row is always committed before its file is made, so an old file without
   * one has lost its upload. Young ones are left alone, whatever the clock says of them.
   */
  async #listUnnamed(): Promise<void> {
    const { state, blobs } = this.#parts;
    for await (const found of blobs.list()) {
      if (this.#closed) return;
      const old = found
        .filter(({ modifiedAt }) => Date.now() - modifiedAt.getTime() > graceMs)
        .map(({ name }) => name);
      const unnamed = old.length === 0 ? [] : await state.unknownBlobs(old);
      if (unnamed.length > 0) await state.addGarbage(unnamed);
    }
  }
}
