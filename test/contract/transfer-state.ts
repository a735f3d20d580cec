/**
 * The contract of TransferState: every promise of `src/transfer/state-store.ts`, for any backend. A backend's own tests
 * call this with a way to open an empty store twice.
 */
import { afterEach, beforeEach, describe } from "vitest";
import { commits } from "./transfer-state/commits.ts";
import { concatenating } from "./transfer-state/concatenating.ts";
import { creating } from "./transfer-state/creating.ts";
import { endings } from "./transfer-state/endings.ts";
import type { OpenState, StateUnderTest } from "./transfer-state/fixture.ts";
import { leases } from "./transfer-state/leases.ts";
import { listing } from "./transfer-state/listing.ts";
import { randomWalk } from "./transfer-state/random-walk.ts";
import { tickets } from "./transfer-state/tickets.ts";

export function transferStateContract(name: string, open: OpenState): void {
  describe(`TransferState over ${name}`, () => {
    let current: StateUnderTest | null = null;
    const under = (): StateUnderTest => {
      if (current === null) throw new Error("The store is open within a test only");
      return current;
    };
    beforeEach(async () => {
      current = await open();
    });
    afterEach(async () => {
      await current?.cleanup();
      current = null;
    });
    describe("creating", () => creating(under));
    describe("tickets", () => tickets(under));
    describe("leases", () => leases(under));
    describe("commits", () => commits(under));
    describe("concatenating", () => concatenating(under));
    describe("endings", () => endings(under));
    describe("listing", () => listing(under));
    describe("all together", () => randomWalk(under));
  });
}
