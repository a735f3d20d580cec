/** Hints that were written for models, as a person at a shell reads them. */
import { describe, expect, test } from "vitest";
import { shellHint } from "../../src/cli/shell-hint.ts";
import { errorCatalogue } from "../../src/errors.ts";

/** Tools that a command stands for. */
const known = /\b(?:file_list|file_delete|upload_create|upload_status|durable_task_[a-z]+)\b/;

describe("shellHint", () => {
  test.each(Object.entries(errorCatalogue))(
    "of %s names no tool that a command stands for",
    (code, entry) => {
      expect(shellHint(code, entry.recoveryHint)).not.toMatch(known);
    },
  );

  test.each([
    [
      "unknown_handle",
      "Call file_list to see your handles, or upload_create to start a new upload.",
      "Run 'longshore ls' to see your handles, or 'longshore put FILE' to start a new upload.",
    ],
    [
      "not_active",
      "Wait as long as Retry-After says, then call upload_status with waitMs until the status is complete.",
      "Wait as long as Retry-After says, then run 'longshore status HANDLE' until the status is complete.",
    ],
    [
      "storage_full",
      "Wait until space is free (file_delete frees some), then make the same call again.",
      "Wait until space is free ('longshore rm HANDLE' frees some), then make the same call again.",
    ],
    [
      "task_not_waiting",
      "Call durable_task_get to see the state of the task.",
      "Run 'longshore task ID' to see the state of the task.",
    ],
  ])("of %s: %s", (code, hint, shown) => {
    expect(shellHint(code, hint)).toBe(shown);
  });

  test("leaves a tool that no command stands for", () => {
    const hint = "Ask for a fresh URL with file_download.";
    expect(shellHint("transfer_expired", hint)).toBe(hint);
  });

  test("does not send somebody back to put where the tool alone may create uploads", () => {
    const hint = "Call upload_create, and send the bytes to the URL that it gives.";
    expect(shellHint("unauthorized", hint)).toBe(hint);
  });
});
