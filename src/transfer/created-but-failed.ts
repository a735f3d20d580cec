import { TransferError } from "../errors.ts";
import type { Created } from "./engine.ts";

/** The upload was created, and its first bytes were not all stored: the answer must still tell where it is. */
export class CreatedButFailed extends TransferError {
  readonly created: Created;

  constructor(error: TransferError, created: Created) {
    super(error.code, error.message, { ...error.options, cause: error.options.cause ?? error });
    this.created = created;
  }
}
