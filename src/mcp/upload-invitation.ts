/** What a caller needs to send bytes over HTTP: URLs and a command line for a fresh ticket, told alike by all tools that hand one out. */
import type { Created } from "../transfer/engine.ts";
import type { ToolContext, ToolFacts } from "./tool-definition.ts";
import { nextStepFor, transferFacts } from "./transfer-facts.ts";

export interface UploadUrls {
  readonly upload: { readonly tus: string; readonly put: string; readonly deferredLength?: true };
  readonly commands: { readonly curl: string; readonly cli: string };
  readonly allowHost: string;
}

export function uploadUrls({ transfer, ticket }: Created, { links }: ToolContext): UploadUrls {
  const url = links.upload(ticket);
  return {
    upload: { tus: url, put: url, ...(transfer.sizeBytes === null && { deferredLength: true }) },
    commands: {
      curl: links.curlUpload(ticket, transfer.filename, transfer.offset),
      cli: links.cliUpload(ticket, transfer.filename),
    },
    allowHost: links.allowHost,
  };
}

/** The result of `upload_create` and `upload_resume`. */
export function invitation(created: Created, context: ToolContext): ToolFacts {
  const { transfer } = created;
  const { inlineChunkBytes, inlineFileBytes } = context.engine.limits;
  return {
    ...transferFacts(transfer),
    ...(transfer.filename !== null && { filename: transfer.filename }),
    ...(transfer.sha256 !== null && { sha256: transfer.sha256 }),
    ...uploadUrls(created, context),
    inline: { tool: "upload_write", maxChunkBytes: inlineChunkBytes, maxFileBytes: inlineFileBytes },
    nextStep: transfer.status === "receiving" ? howToSend(created, context) : nextStepFor(transfer),
  };
}

function howToSend({ transfer }: Created, { links, engine }: ToolContext): string {
  const { handle, filename, offset, sizeBytes } = transfer;
  const run =
    filename === null
      ? "Run the command in commands.curl with the path of your file after -T"
      : `Run the command in commands.curl in the folder that holds ${JSON.stringify(filename)}`;
  const steps = [
    `${run} (the network must allow ${links.allowHost}), then call upload_status with handle "${handle}" and waitMs 40000.`,
  ];
  if (sizeBytes === null) {
    steps.push(
      "The size is not known yet: curl tells it by itself, a tus client must use a deferred length.",
    );
  }
  // Offered only where it can work: a declared size above the limit, or an offset past it, is refused.
  if (Math.max(offset, sizeBytes ?? 0) <= engine.limits.inlineFileBytes) {
    steps.push(`If no command can be run, send the bytes with upload_write from offset ${offset}.`);
  }
  return steps.join(" ");
}
