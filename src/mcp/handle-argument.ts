/**
 * The `handle` argument of the tools. Models like to pass the path of a file on their own machine: that gets an answer of its
 * own, which says how to bring the file here.
 */
import * as z from "zod";
import { TransferError } from "../errors.ts";
import { isHandle } from "../transfer/identifiers.ts";
import { unknownHandle } from "../transfer/view.ts";

export const handleArgument = z
  .string()
  .max(4096)
  .describe("Handle (fh_…) from upload_create or file_list; never a path.");

/**
 * The handle, if it has the form of one.
 *
 * @throws TransferError `client_path_not_reachable` for a path, `unknown_handle` for anything else that is none.
 */
export function requireHandle(text: string): string {
  if (isHandle(text)) return text;
  if (looksLikePath(text)) throw pathNotReachable(text, "handle");
  throw unknownHandle();
}

/** A path as Unix, Windows or a `file:` URL write it, or a bare file name. Handles have neither slashes nor dots. */
export function looksLikePath(text: string): boolean {
  if (/^file:/i.test(text)) return true;
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return false;
  return /[/\\]/.test(text) || /^~|^[a-z]:/i.test(text) || /[^.\s]\.[a-z0-9]{1,8}$/i.test(text);
}

export function pathNotReachable(path: string, param: string): TransferError {
  const filename = lastSegment(path).slice(0, 255);
  return new TransferError(
    "client_path_not_reachable",
    "This is a path on your machine, which the server cannot read.",
    {
      param,
      recoveryHint:
        "Call upload_create, upload the file with the command in commands.curl, and use the handle.",
      repair: { tool: "upload_create", arguments: { filename: filename === "" ? "file" : filename } },
    },
  );
}

/** The name after the last slash or backslash. */
export function lastSegment(path: string): string {
  return /[^/\\]*$/.exec(path)?.[0] ?? "";
}
