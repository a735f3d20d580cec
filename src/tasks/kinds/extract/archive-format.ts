/** What an archive is, by its first bytes: its name may say anything. */
import type { OpenedFile } from "../../engine.ts";
import { noArchive } from "./refusal.ts";

export type ArchiveFormat = "zip" | "tar" | "tar.gz";

const tarMagicAt = 257;

/** A gzip file is taken for a packed tar until it is read. */
export async function archiveFormat(file: OpenedFile): Promise<ArchiveFormat> {
  const head = await readHead(file, 512);
  const start = head.toString("latin1", 0, 4);
  if (start === "PK\x03\x04" || start === "PK\x05\x06") return "zip";
  if (start.startsWith("\x1f\x8b")) return "tar.gz";
  if (isTar(head)) return "tar";
  throw noArchive();
}

export function isTar(head: Buffer): boolean {
  return head.toString("latin1", tarMagicAt, tarMagicAt + 5) === "ustar";
}

async function readHead(file: OpenedFile, bytes: number): Promise<Buffer> {
  const end = Math.min(bytes, file.transfer.sizeBytes ?? 0);
  if (end === 0) return Buffer.alloc(0);
  const pieces: Buffer[] = [];
  for await (const piece of file.stream(0, end)) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
