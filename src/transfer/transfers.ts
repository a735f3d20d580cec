/** The transfer engine: who may do what to which record, put together from the parts beside this file. */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { TransferError } from "../errors.ts";
import { DigestFollower } from "../integrity/digest-follower.ts";
import type { Log } from "../log.ts";
import { Appender } from "./appender.ts";
import type { BlobStore } from "./blob-store.ts";
import { Care, type Recovery } from "./care.ts";
import { Completion } from "./completion.ts";
import { concatenateUploads } from "./concatenation.ts";
import { Contention } from "./contention.ts";
import { CreatedButFailed } from "./created-but-failed.ts";
import type {
  Appended,
  AppendRequest,
  ConcatenateRequest,
  Created,
  CreateRequest,
  ListPage,
  OpenFile,
  PrefixDigest,
  StoredFault,
  SweepReport,
  Transfer,
  TransferEngine,
  TransferLimits,
  VerifyReport,
} from "./engine.ts";
import { isHandle, isTicket, newBlobName, newHandle, newTicket, ticketHash } from "./identifiers.ts";
import { openFile } from "./open-file.ts";
import type { SegmentRecord, TicketKind, TransferStatus, UploadRecord } from "./records.ts";
import { isSmallFile, withSmallFiles } from "./small-files.ts";
import type {
  ChangeFeed,
  CreateOutcome,
  Liveness,
  NewTicket,
  Quota,
  SmallOutcome,
  TicketView,
  TransferState,
} from "./state-store.ts";
import { StatusWaiters } from "./status-waiters.ts";
import { UploadDigests } from "./upload-digests.ts";
import { verifyStored } from "./verify-stored.ts";
import {
  digestMismatch,
  expired,
  finalUpload,
  isExpired,
  locked,
  nothingMissing,
  offsetMismatch,
  otherFile,
  quotaExceeded,
  stillVerifying,
  toTransfer,
  unknownHandle,
  urlExpired,
} from "./view.ts";

export interface TransferParts {
  readonly state: TransferState;
  readonly changes: ChangeFeed;
  readonly liveness: Liveness;
  readonly blobs: BlobStore;
  readonly limits: TransferLimits;
  readonly quota: Quota;
  readonly minFreeBytes: number;
  readonly log: Log;
}

interface Found {
  readonly upload: UploadRecord;
  readonly now: number;
}

/** Registers this process, repairs what dead ones left, and starts the engine. `close` ends both. */
export async function createTransfers(
  parts: TransferParts,
): Promise<{ transfers: TransferEngine; recovery: Recovery }> {
  const transfers = new Transfers(parts);
  try {
    await parts.state.registerProcess(parts.liveness.processId, process.pid);
    return { transfers, recovery: await transfers.recover() };
  } catch (error) {
    await transfers.close();
    throw error;
  }
}

class Transfers implements TransferEngine {
  readonly limits: TransferLimits;
  readonly #parts: TransferParts;
  readonly #follower = new DigestFollower();
  readonly #digests: UploadDigests;
  readonly #contention: Contention;
  readonly #completion: Completion;
  readonly #appender: Appender;
  readonly #care: Care;
  readonly #waiters: StatusWaiters;
  #closed: Promise<void> | null = null;

  constructor(given: TransferParts) {
    const parts = { ...given, blobs: withSmallFiles(given.blobs, given.state) };
    this.#parts = parts;
    this.limits = parts.limits;
    this.#digests = new UploadDigests(this.#follower, parts.blobs, (handle) => parts.state.segments(handle));
    this.#contention = new Contention(parts);
    this.#waiters = new StatusWaiters(parts.changes);
    this.#completion = new Completion({
      ...parts,
      digests: this.#digests,
      follower: this.#follower,
      onSettled: (handle) => this.#waiters.wake(handle),
    });
    this.#appender = new Appender({
      ...parts,
      contention: this.#contention,
      digests: this.#digests,
      completion: this.#completion,
    });
    this.#care = new Care({ ...parts, contention: this.#contention, completion: this.#completion });
  }

  recover(): Promise<Recovery> {
    return this.#care.recover();
  }

  async create(principal: string, request: CreateRequest): Promise<Created> {
    // Nothing will ever come for an empty file, so it is complete at once.
    if (request.sizeBytes === 0) return this.createWith(principal, request, { offset: 0, body: emptyBody() });
    return (await this.#create(principal, request, false)).created;
  }

  async createWith(
    principal: string,
    request: CreateRequest,
    append: AppendRequest,
    onCreated?: (created: Created) => void,
  ): Promise<Created & Appended> {
    const { lengthBytes } = append.body;
    if (request.sizeBytes !== null && lengthBytes !== null && lengthBytes > request.sizeBytes) {
      throw new TransferError(
        "size_mismatch",
        `The body has ${lengthBytes} bytes, more than the ${request.sizeBytes} announced.`,
      );
    }
    // One that must be told of its creation before the body comes cannot wait for the body.
    const fresh = {
      sizeBytes: request.sizeBytes,
      offset: 0,
      leaseActive: false,
      concat: request.concat ?? "whole",
    } as const;
    const isSmall = onCreated === undefined && request.idempotencyKey === null && isSmallFile(fresh, append);
    if (isSmall) return this.#createSmall(principal, request, append);
    const { created, outcome } = await this.#create(principal, request, true);
    onCreated?.(created);
    if (outcome.kind !== "created" || outcome.segment === null) {
      const found = await this.#own(principal, created.transfer.handle);
      return { ...created, ...(await this.#append(found, append)) };
    }
    try {
      const appended = await this.#appender.appendFirst(outcome.upload, outcome.segment, outcome.now, append);
      return { ...created, ...appended };
    } catch (error) {
      throw error instanceof TransferError ? new CreatedButFailed(error, created) : error;
    }
  }

  /** A whole small file with its creation: the bytes first, then both in one commit. A body that breaks off creates nothing. */
  async #createSmall(
    principal: string,
    request: CreateRequest,
    append: AppendRequest,
  ): Promise<Created & Appended> {
    await this.#checkCreation(request);
    const bytes = await this.#appender.readSmall(append);
    if (bytes.byteLength < (append.body.lengthBytes ?? 0))
      throw new TransferError("size_mismatch", "The body ended before its announced length.");
    let storing: Promise<SmallOutcome> | null = null;
    const { created } = await this.#create(principal, request, false, (handle) => {
      storing = this.#appender.writeSmall(handle, 1, bytes);
      storing.catch(() => {});
    });
    try {
      const outcome = await (storing ?? this.#appender.writeSmall(created.transfer.handle, 1, bytes));
      if (outcome.kind !== "ok") throw locked(outcome.kind === "unknown" ? null : outcome.upload);
      return {
        ...created,
        ...(await this.#appender.finishSmall(outcome.upload, outcome.now, bytes.byteLength)),
      };
    } catch (error) {
      throw error instanceof TransferError ? new CreatedButFailed(error, created) : error;
    }
  }

  concatenate(principal: string, request: ConcatenateRequest): Promise<Created> {
    return concatenateUploads(
      { ...this.#parts, completion: this.#completion, checkSpace: () => this.#appender.checkSpace() },
      principal,
      request,
    );
  }

  async resume(principal: string, handle: string): Promise<Created> {
    const { upload, now } = await this.#own(principal, handle);
    if (isExpired(upload, now)) throw expired(upload);
    const { ticket, stored } = this.#newTicket("upload", null);
    switch (upload.status) {
      case "receiving": {
        const added = await this.#parts.state.addTicket(handle, principal, stored);
        if (added === null) throw unknownHandle();
        return { transfer: toTransfer(added.upload, added.now), ticket, created: false };
      }
      case "mismatch": {
        const restarted = await this.#parts.state.startOver(handle, stored, this.limits.uploadTtlMs);
        if (restarted === null) return this.resume(principal, handle);
        this.#digests.drop(upload);
        this.#waiters.wake(handle);
        return { transfer: toTransfer(restarted.upload, restarted.now), ticket, created: false };
      }
      case "verifying":
        throw stillVerifying(upload);
      case "complete":
        throw new TransferError("not_active", "The upload is complete: there is nothing to resume.", {
          cursor: upload.offset,
          recoveryHint: "Use the file: file_read or file_download take this handle.",
          repair: { tool: "file_download", arguments: { handle } },
        });
      default:
        return upload.status satisfies never;
    }
  }

  async head(ticket: string, options: { disturb?: boolean } = {}): Promise<Transfer> {
    let found = await this.#byTicket(ticket, "upload");
    // A few rounds: behind the writer that was ended another may have come.
    for (let round = 0; round < 3 && options.disturb !== false; round += 1) {
      const { upload } = found;
      // One of this process may be about to take its lease, which the record does not show yet.
      const running = this.#appender.active.get(upload.handle) !== undefined;
      if (upload.status !== "receiving" || !(running || upload.leaseActive)) break;
      const ended = running && (await this.#appender.active.end(upload.handle));
      if (!ended && upload.leaseActive) await this.#contention.makeWay(upload, "end");
      found = await this.#byTicket(ticket, "upload");
    }
    return toTransfer(found.upload, found.now);
  }

  async append(ticket: string, request: AppendRequest): Promise<Appended> {
    return this.#append(await this.#byTicket(ticket, "upload"), request);
  }

  async appendTo(principal: string, handle: string, request: AppendRequest): Promise<Appended> {
    return this.#append(await this.#own(principal, handle), request);
  }

  async remove(ticket: string): Promise<void> {
    await this.#remove(await this.#byTicket(ticket, "upload", { evenExpired: true }));
  }

  async removeOwn(principal: string, handle: string): Promise<void> {
    await this.#remove(await this.#own(principal, handle));
  }

  async status(
    principal: string,
    handle: string,
    options: { waitMs?: number; signal?: AbortSignal } = {},
  ): Promise<Transfer> {
    const look = async () => {
      const { upload, now } = await this.#own(principal, handle);
      return toTransfer(upload, now);
    };
    const first = await look();
    if (!options.waitMs || first.status === "complete" || first.status === "expired") return first;
    return this.#waiters.wait(
      handle,
      first,
      look,
      (one) => one.status !== first.status,
      options.waitMs,
      options.signal,
    );
  }

  async prefixDigest(principal: string, handle: string, budgetMs: number): Promise<PrefixDigest> {
    const { upload } = await this.#own(principal, handle);
    if (upload.sha256 !== null) return { bytes: upload.offset, sha256: upload.sha256 };
    if (upload.offset === 0) return { bytes: 0, sha256: emptySha256 };
    this.#digests.follow(upload);
    const until = performance.now() + budgetMs;
    for (;;) {
      const soFar = await this.#digests.soFar(upload);
      // A running write is hashed as it is written, ahead of what is acknowledged: then its record is read again.
      const current = await this.#own(principal, handle);
      if (soFar !== null && soFar.bytes === current.upload.offset)
        return { bytes: soFar.bytes, sha256: soFar.hex };
      if (performance.now() >= until) {
        const bytes = soFar === null || soFar.bytes > current.upload.offset ? 0 : soFar.bytes;
        return { bytes, sha256: bytes === 0 || soFar === null ? emptySha256 : soFar.hex };
      }
      if (soFar === null) this.#digests.follow(current.upload);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async list(
    principal: string,
    query: { status: TransferStatus | null; limit: number; cursor: string | null },
  ): Promise<ListPage> {
    const limit = Math.max(1, Math.min(1000, query.limit));
    const { uploads, now } = await this.#parts.state.listUploads({
      principal,
      status: query.status,
      limit: limit + 1,
      after: query.cursor === null ? null : parseCursor(query.cursor),
    });
    const page = uploads.slice(0, limit);
    const last = page.at(-1);
    return {
      transfers: page.map((upload) => toTransfer(upload, now)),
      nextCursor: uploads.length > limit && last !== undefined ? formatCursor(last) : null,
    };
  }

  async openOwn(principal: string, handle: string): Promise<OpenFile> {
    return this.#open(await this.#own(principal, handle), await this.#parts.state.segments(handle));
  }

  async openDownload(ticket: string): Promise<OpenFile> {
    const view = isTicket(ticket) ? await this.#parts.state.findDownload(ticketHash(ticket)) : null;
    return this.#open(this.#judge(view, "download"), view?.segments ?? []);
  }

  async mintDownload(principal: string, handle: string, ttlMs: number | null) {
    const { upload, now } = await this.#own(principal, handle);
    this.#requireComplete(upload, now);
    const life = ttlMs ?? this.limits.downloadTtlMs;
    const { ticket, stored } = this.#newTicket("download", life);
    const added = await this.#parts.state.addTicket(handle, principal, stored);
    if (added === null) throw unknownHandle();
    return { transfer: toTransfer(added.upload, added.now), ticket, expiresAt: new Date(added.now + life) };
  }

  sweep(): Promise<SweepReport> {
    return this.#care.sweep();
  }

  verify(onFault: (fault: StoredFault) => void): Promise<VerifyReport> {
    return verifyStored({ ...this.#parts, follower: this.#follower }, onFault);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#waiters.close();
    await this.#appender.close();
    await this.#care.close();
    await this.#completion.close();
    await this.#follower.close();
    await this.#parts.blobs.close();
  }

  async #create(
    principal: string,
    request: CreateRequest,
    begin: boolean,
    /** Called in the same turn, so that what it asks of the state joins the commit. */
    alongside: (handle: string) => void = () => {},
  ): Promise<{ created: Created; outcome: CreateOutcome }> {
    await this.#checkCreation(request);
    const { ticket, stored } = this.#newTicket("upload", null);
    const handle = newHandle();
    const creating = this.#parts.state.createUpload({
      handle,
      principal,
      filename: request.filename,
      contentType: request.contentType,
      metadata: request.metadata,
      sizeBytes: request.sizeBytes,
      declaredSha256: request.sha256,
      concat: request.concat ?? "whole",
      ttlMs: this.limits.uploadTtlMs,
      ticket: stored,
      idempotency:
        request.idempotencyKey === null
          ? null
          : { tool: "upload_create", key: request.idempotencyKey, argumentsHash: argumentsHash(request) },
      quota: this.#parts.quota,
      begin: begin ? { owner: this.#parts.liveness.processId, blob: newBlobName(handle) } : null,
    });
    alongside(handle);
    const [outcome] = await Promise.all([
      creating,
      begin ? this.#appender.signOfLife().catch(() => {}) : null,
    ]);
    switch (outcome.kind) {
      case "created":
      case "existing": {
        const transfer = toTransfer(outcome.upload, outcome.now);
        return { created: { transfer, ticket, created: outcome.kind === "created" }, outcome };
      }
      case "conflict":
        throw new TransferError(
          "idempotency_conflict",
          "This idempotencyKey was used with other arguments before.",
        );
      case "quota":
        throw quotaExceeded(outcome.limit, outcome.used);
      case "taken":
        throw new TransferError("internal_error", "Something went wrong inside the server.");
      default:
        return outcome satisfies never;
    }
  }

  async #checkCreation(request: CreateRequest): Promise<void> {
    if (request.sizeBytes !== null && request.sizeBytes > this.limits.maxFileBytes) {
      throw new TransferError(
        "file_too_large",
        `Files of up to ${this.limits.maxFileBytes} bytes are accepted.`,
      );
    }
    await this.#appender.checkSpace();
  }

  async #append({ upload, now }: Found, request: AppendRequest): Promise<Appended> {
    if (isExpired(upload, now)) throw expired(upload);
    if (upload.concat === "final") throw finalUpload(upload);
    if (upload.status === "receiving") return this.#appender.append(upload, request);
    return this.#appendToFinished(upload, now, request);
  }

  /** All bytes are here: an empty body at the end repeats the final answer, a resend is compared, anything else is refused. */
  async #appendToFinished(found: UploadRecord, now: number, request: AppendRequest): Promise<Appended> {
    let upload = found;
    if (upload.status === "verifying") {
      upload = await this.#waitVerified(upload);
      if (upload.status === "verifying") throw stillVerifying(upload);
    }
    if (upload.status === "mismatch") throw digestMismatch(upload);
    const { declareSha256 = null } = request;
    if (declareSha256 !== null && declareSha256 !== upload.sha256) throw otherFile(upload, declareSha256);
    if (request.resend === true) {
      return this.#appender.compareOnly(upload, now, request).catch((thrown: unknown) => {
        throw nothingMissing(thrown);
      });
    }
    if (request.offset !== upload.offset) throw offsetMismatch(upload, request.offset);
    const { lengthBytes, stream } = request.body;
    // A sender that waits to be asked for a body of unknown length would otherwise wait for ever.
    if (lengthBytes === null) request.onAccepted?.();
    if (lengthBytes === null ? !(await isEmpty(stream)) : lengthBytes > 0) {
      throw new TransferError(
        "size_mismatch",
        `The upload is complete with ${upload.offset} bytes; it takes no more.`,
        {
          cursor: upload.offset,
          retryable: false,
          recoveryHint: "Nothing is to be sent: the upload is complete.",
        },
      );
    }
    this.#appender.checkEmpty(upload, request);
    return { transfer: toTransfer(upload, now), receivedBytes: 0 };
  }

  /** A declared digest is waited for as long as a request may wait; another process may be computing it. */
  async #waitVerified(upload: UploadRecord): Promise<UploadRecord> {
    const look = async () => (await this.#parts.state.findUpload(upload.handle))?.upload ?? upload;
    const waitMs = upload.declaredSha256 === null ? 2_000 : 10_000;
    return this.#waiters.wait(
      upload.handle,
      upload,
      look,
      (one) => one.status !== "verifying",
      waitMs,
      undefined,
    );
  }

  async #remove({ upload }: Found): Promise<void> {
    let current = upload;
    for (let round = 0; round < 4; round += 1) {
      if (current.leaseActive && current.status === "receiving") {
        const running = this.#appender.active.get(current.handle);
        if (running !== undefined) {
          if (performance.now() - running.lastByteAt() < 2_000) throw locked(current);
          await this.#appender.active.end(current.handle);
        } else await this.#contention.makeWay(current, "if_idle");
      }
      // A verification may go on reading: it finds nothing to settle afterwards.
      const fresh = await this.#parts.state.findUpload(current.handle);
      if (fresh === null) throw unknownHandle();
      const ifFence = fresh.upload.status === "verifying" ? null : fresh.upload.fence;
      const { removed } = await this.#parts.state.removeUpload(current.handle, ifFence);
      if (removed) {
        this.#digests.drop(current);
        this.#waiters.wake(current.handle);
        return;
      }
      current = fresh.upload;
    }
    throw locked(current);
  }

  #open(found: Found, segments: readonly SegmentRecord[]): OpenFile {
    const { sizeBytes, sha256 } = this.#requireComplete(found.upload, found.now);
    return openFile(
      { ...this.#parts, completion: this.#completion },
      { ...found, sizeBytes, sha256, segments },
    );
  }

  #requireComplete(upload: UploadRecord, now: number): { sizeBytes: number; sha256: string } {
    if (isExpired(upload, now)) throw expired(upload);
    if (upload.status === "verifying") throw stillVerifying(upload);
    if (upload.status === "mismatch") throw digestMismatch(upload);
    if (upload.status !== "complete" || upload.sizeBytes === null || upload.sha256 === null) {
      throw new TransferError(
        "not_active",
        `The upload is ${upload.status}: ${upload.offset} of ${upload.sizeBytes ?? "?"} bytes are here.`,
        {
          cursor: upload.offset,
          recoveryHint: "Finish the upload first: upload_resume gives the command.",
          repair: { tool: "upload_resume", arguments: { handle: upload.handle } },
        },
      );
    }
    return { sizeBytes: upload.sizeBytes, sha256: upload.sha256 };
  }

  async #own(principal: string, handle: string): Promise<Found> {
    const found = isHandle(handle) ? await this.#parts.state.findUpload(handle) : null;
    if (found === null || found.upload.principal !== principal) throw unknownHandle();
    return found;
  }

  async #byTicket(ticket: string, kind: TicketKind, options: { evenExpired?: boolean } = {}): Promise<Found> {
    const view = isTicket(ticket) ? await this.#parts.state.findByTicket(ticketHash(ticket)) : null;
    return this.#judge(view, kind, options);
  }

  /** What the ticket opens, at this moment. */
  #judge(view: TicketView | null, kind: TicketKind, options: { evenExpired?: boolean } = {}): Found {
    if (view === null || view.ticket.kind !== kind || view.ticket.generation !== view.upload.generation)
      throw unknownHandle();
    const { upload, now } = view;
    if (options.evenExpired !== true && isExpired(upload, now)) throw expired(upload);
    const ticketEnds =
      kind === "upload" && upload.completedAt !== null
        ? upload.completedAt + this.limits.uploadTtlMs
        : view.ticket.expiresAt;
    if (ticketEnds !== null && ticketEnds <= now) throw urlExpired(upload, toTransfer(upload, now).status);
    return { upload, now };
  }

  #newTicket(kind: TicketKind, ttlMs: number | null): { ticket: string; stored: NewTicket } {
    const ticket = newTicket();
    return { ticket, stored: { hash: ticketHash(ticket), kind, ttlMs } };
  }
}

function emptyBody(): AppendRequest["body"] {
  return { stream: Readable.from([]), lengthBytes: 0 };
}

/** Whether a body of unknown length has no byte. Reads up to its first byte, and destroys nothing. */
function isEmpty(stream: Readable): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (empty: boolean) => {
      stream.off("data", onData).off("end", onEnd).off("close", onEnd).pause();
      resolve(empty);
    };
    const onData = (piece: Uint8Array) => {
      if (piece.byteLength > 0) settle(false);
    };
    const onEnd = () => settle(true);
    stream.on("error", () => {});
    if (stream.readableEnded || stream.destroyed) return resolve(true);
    stream.on("data", onData).on("end", onEnd).on("close", onEnd);
  });
}

const emptySha256 = createHash("sha256").digest("hex");

function argumentsHash(request: CreateRequest): string {
  const canonical = JSON.stringify([
    request.filename,
    request.contentType,
    request.metadata,
    request.sizeBytes,
    request.sha256,
  ]);
  return createHash("sha256").update(canonical).digest("hex");
}

function formatCursor(upload: UploadRecord): string {
  return Buffer.from(`${upload.createdAt}.${upload.handle}`).toString("base64url");
}

function parseCursor(cursor: string): { createdAt: number; handle: string } {
  const [createdAt = "", handle = ""] = Buffer.from(cursor.slice(0, 200), "base64url")
    .toString("latin1")
    .split(".");
  if (!/^\d{1,15}$/.test(createdAt) || !isHandle(handle)) {
    throw new TransferError("invalid_param", "That is no cursor of this list.", {
      param: "cursor",
      recoveryHint:
        "Leave cursor out to start from the beginning, or pass nextCursor of the page before exactly.",
    });
  }
  return { createdAt: Number(createdAt), handle };
}
