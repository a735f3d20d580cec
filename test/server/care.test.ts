/** The sweep timer and the readiness probe by themselves. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { TransferError } from "../../src/errors.ts";
import type { LogEvent } from "../../src/log.ts";
import { createReadiness } from "../../src/server/readiness.ts";
import { startSweepTimer } from "../../src/server/sweep-timer.ts";
import { smallDisk } from "../support/small-disk.ts";

const minuteMs = 60_000;

describe("the sweep timer", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("sweeps again and again, never twice at once, and goes on after a failure", async () => {
    const events: LogEvent[] = [];
    let sweeps = 0;
    const timer = startSweepTimer({
      isTight: async () => false,
      log: (event) => events.push(event),
      sweep: async () => {
        sweeps += 1;
        if (sweeps === 1) throw new Error("disk");
      },
    });
    await vi.advanceTimersByTimeAsync(3.7 * minuteMs);
    expect(sweeps).toBe(0);
    await vi.advanceTimersByTimeAsync(2.6 * minuteMs);
    expect(sweeps).toBe(1);
    expect(events).toEqual([expect.objectContaining({ level: "warn", event: "server.sweep_failed" })]);
    await vi.advanceTimersByTimeAsync(6.3 * minuteMs);
    expect(sweeps).toBe(2);
    await timer.stop();
    await vi.advanceTimersByTimeAsync(60 * minuteMs);
    expect(sweeps).toBe(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("sweeps about each minute while the disk is tight, and no more often afterwards than before", async () => {
    let [tight, sweeps] = [false, 0];
    const timer = startSweepTimer({
      isTight: async () => tight,
      log: () => {},
      sweep: async () => {
        sweeps += 1;
      },
    });
    await vi.advanceTimersByTimeAsync(3 * minuteMs);
    expect(sweeps).toBe(0);
    tight = true;
    await vi.advanceTimersByTimeAsync(1.3 * minuteMs);
    expect(sweeps).toBeGreaterThanOrEqual(1);
    await vi.advanceTimersByTimeAsync(10 * minuteMs);
    expect(sweeps).toBeGreaterThanOrEqual(8);
    expect(sweeps).toBeLessThanOrEqual(15);
    [tight, sweeps] = [false, 0];
    await vi.advanceTimersByTimeAsync(2.4 * minuteMs);
    expect(sweeps).toBe(0);
    await vi.advanceTimersByTimeAsync(3.6 * minuteMs);
    expect(sweeps).toBeLessThanOrEqual(1);
    await timer.stop();
  });

  test("stop waits for the sweep that runs", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = startSweepTimer({ isTight: async () => false, log: () => {}, sweep: () => promise });
    await vi.advanceTimersByTimeAsync(6.3 * minuteMs);
    let stopped = false;
    const stop = timer.stop().then(() => {
      stopped = true;
    });
    await vi.advanceTimersByTimeAsync(1000);
    expect(stopped).toBe(false);
    resolve();
    await stop;
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("readiness", () => {
  const readiness = (probe: () => Promise<void>, isStopping = () => false) =>
    createReadiness({ probe, dataDir: process.cwd(), minFreeBytes: 0, isStopping });

  test("ends on a disk without a free byte, however small the reserve", async (context) => {
    const disk = smallDisk(8);
    if ("why" in disk) return context.skip(disk.why);
    context.onTestFinished(disk.unmount);
    const ready = createReadiness({
      probe: async () => {},
      dataDir: disk.path,
      minFreeBytes: 0,
      isStopping: () => false,
    });
    await ready();
    disk.fill(0);
    await expect(ready()).rejects.toMatchObject({ code: "storage_full", retryable: true });
    disk.free();
    await ready();
  });

  test("holds while the stores answer", async () => {
    await expect(readiness(async () => {})()).resolves.toBeUndefined();
  });

  test("ends when the server stops, though the stores answer", async () => {
    await expect(
      readiness(
        async () => {},
        () => true,
      )(),
    ).rejects.toMatchObject({ code: "storage_unavailable" });
  });

  test("passes on what the state store says of itself", async () => {
    const error = new TransferError("storage_full", "The disk is full.");
    await expect(readiness(() => Promise.reject(error))()).rejects.toBe(error);
  });

  test("calls anything else unavailable, and says nothing of the inside", async () => {
    const failed = readiness(() => Promise.reject(new Error("/secret/path")))();
    await expect(failed).rejects.toMatchObject({
      code: "storage_unavailable",
      message: "A store cannot be reached.",
    });
  });

  test("does not wait for a store that hangs", async () => {
    vi.useFakeTimers();
    try {
      const hanging = readiness(() => new Promise(() => {}))();
      const expected = expect(hanging).rejects.toMatchObject({ code: "storage_unavailable" });
      await vi.advanceTimersByTimeAsync(5000);
      await expected;
    } finally {
      vi.useRealTimers();
    }
  });
});
