import { describe, expect, test } from "vitest";
import { TransferError } from "../../src/errors.ts";
import { withRepair } from "../../src/mcp/repair.ts";

const handle = `fh_${"a".repeat(32)}`;

describe("an error told by a tool", () => {
  test("of a file that is still being checked says which call to wait with", () => {
    const error = new TransferError("not_active", "Still verifying.", {
      retryable: true,
      retryAfterSeconds: 1,
    });
    expect(withRepair(error, "file_read", { handle })).toMatchObject({
      retryable: true,
      options: {
        retryAfterSeconds: 1,
        repair: { tool: "upload_status", arguments: { handle, waitMs: 40_000 } },
      },
    });
  });

  test("of a busy store has a write ask for the offset, and everything else repeat the call", () => {
    const error = new TransferError("storage_unavailable", "Busy.", { retryAfterSeconds: 3 });
    expect(withRepair(error, "upload_write", { handle }).options.repair).toEqual({
      tool: "upload_status",
      arguments: { handle },
    });
    expect(withRepair(error, "file_list", {}).recoveryHint).toBe(
      "Wait 3 seconds, then make the same call again.",
    );
    expect(withRepair(error, "upload_write", { handle: "no handle" }).recoveryHint).toContain(
      "same call again",
    );
  });

  test("keeps code, message, cursor and cause, and names no call for arguments that are none", () => {
    const error = new TransferError("size_mismatch", "Too much.", { cursor: 5, cause: "c" });
    const told = withRepair(error, "upload_write", { handle, offset: 5 });
    expect(told).toMatchObject({
      code: "size_mismatch",
      message: "Too much.",
      status: 413,
      options: { cursor: 5 },
    });
    expect(told.cause).toBe(error);
    for (const given of [undefined, null, 5, "x", [], { handle: 5 }, { handle: "/a" }]) {
      expect(withRepair(error, "upload_write", given).options.repair).toBeUndefined();
    }
  });

  test("that nothing can be added to is the same error", () => {
    const error = new TransferError("file_too_large", "Too large.");
    expect(withRepair(error, "upload_create", {})).toBe(error);
  });

  test("that cannot be repaired gets no repair", () => {
    const error = new TransferError("size_mismatch", "Complete.", { cursor: 5, retryable: false });
    expect(withRepair(error, "upload_write", { handle, offset: 5 })).toBe(error);
  });
});
