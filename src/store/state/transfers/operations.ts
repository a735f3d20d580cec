/** All operations of the transfers' state, by the names of their interface. */
import type { TransferState } from "../../../transfer/state-store.ts";
import type { OperationsOf } from "../operation.ts";
import { replaceSegments } from "./compaction.ts";
import { concatenate } from "./concatenation.ts";
import { addGarbage, announceBlob, forgetGarbage, garbage, garbageLeft, unknownBlobs } from "./garbage.ts";
import { leaseRequests, refuseLease, requestLease } from "./lease-requests.ts";
import { completeUploads, listUploads } from "./listing.ts";
import { adoptOrphan, idleUploads, orphans } from "./orphans.ts";
import { heartbeat, processes, registerProcess, removeProcess } from "./processes.ts";
import { expire, removeUpload } from "./removal.ts";
import { segments } from "./segments.ts";
import { smallFile, storeSmall } from "./small-files.ts";
import { addTicket, removeStaleTickets } from "./tickets.ts";
import { createUpload, findByTicket, findDownload, findUpload } from "./uploads.ts";
import { usage } from "./usage.ts";
import { claimVerifications, settle, startOver } from "./verification.ts";
import { beginWrite, commitWrite, releaseWrite } from "./writing.ts";

/** All but `giveBackSpace`: how a database does that is its own. */
export const transferOperations: OperationsOf<Omit<TransferState, "giveBackSpace">> = {
  createUpload: { mode: "write", run: createUpload },
  concatenate: { mode: "write", run: concatenate },
  findByTicket: { mode: "read", run: findByTicket },
  findDownload: { mode: "snapshot", run: findDownload },
  findUpload: { mode: "read", run: findUpload },
  listUploads: { mode: "snapshot", run: listUploads },
  completeUploads: { mode: "read", run: completeUploads },
  segments: { mode: "read", run: segments },
  addTicket: { mode: "write", run: addTicket },
  startOver: { mode: "write", run: startOver },
  removeUpload: { mode: "write", frees: true, run: removeUpload },
  beginWrite: { mode: "write", run: beginWrite },
  commitWrite: { mode: "write", run: commitWrite },
  storeSmall: { mode: "write", run: storeSmall },
  smallFile: { mode: "read", run: smallFile },
  releaseWrite: { mode: "write", frees: true, run: releaseWrite },
  requestLease: { mode: "write", frees: true, run: requestLease },
  refuseLease: { mode: "write", frees: true, run: refuseLease },
  leaseRequests: { mode: "read", run: leaseRequests },
  settle: { mode: "write", run: settle },
  claimVerifications: { mode: "write", frees: true, run: claimVerifications },
  orphans: { mode: "snapshot", run: orphans },
  idleUploads: { mode: "read", run: idleUploads },
  adoptOrphan: { mode: "write", frees: true, run: adoptOrphan },
  replaceSegments: { mode: "write", run: replaceSegments },
  announceBlob: { mode: "housekeeping", run: announceBlob },
  expire: { mode: "write", frees: true, run: expire },
  garbage: { mode: "read", run: garbage },
  garbageLeft: { mode: "read", run: garbageLeft },
  forgetGarbage: { mode: "housekeeping", frees: true, run: forgetGarbage },
  unknownBlobs: { mode: "read", run: unknownBlobs },
  addGarbage: { mode: "housekeeping", frees: true, run: addGarbage },
  removeStaleTickets: { mode: "housekeeping", frees: true, run: removeStaleTickets },
  registerProcess: { mode: "housekeeping", frees: true, run: registerProcess },
  heartbeat: { mode: "housekeeping", run: heartbeat },
  processes: { mode: "read", run: processes },
  removeProcess: { mode: "write", frees: true, run: removeProcess },
  usage: { mode: "read", run: usage },
};
