import * as z from "zod";
import { handleArgument, requireHandle } from "../handle-argument.ts";
import { commandsFact, outputSchema, sha256Fact, transferFactSchemas } from "../output-schema.ts";
import { defineTool } from "../tool-definition.ts";
import { transferFacts } from "../transfer-facts.ts";

/** A URL is a secret that travels; a week is enough for the slowest reader. */
const longestUrlSeconds = 604_800;

export const fileDownload = defineTool({
  name: "file_download",
  title: "Get a download URL",
  description: `Gets a large file out without passing its bytes through this conversation: gives a URL and a curl line to run where the file is wanted. Use it for anything larger than a few kilobytes.
The URL needs no login and lets anyone who has it read this one file until expiresAt. Downloads resume, and sha256 tells whether the copy is right.`,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({
    handle: handleArgument,
    expiresInSeconds: z
      .int()
      .min(1)
      .max(longestUrlSeconds)
      .optional()
      .describe(`Life of the URL in seconds, ${longestUrlSeconds} (a week) at most.`),
  }),
  outputSchema: outputSchema({
    ...transferFactSchemas,
    filename: z.string().optional(),
    url: z.string().optional(),
    expiresAt: z.string().optional().describe("Until then the URL works."),
    fileExpiresAt: z.string().optional(),
    sha256: sha256Fact,
    commands: commandsFact,
    allowHost: z.string().optional(),
  }),
  async handler({ handle, expiresInSeconds }, { engine, links, principal }) {
    const ttlMs = expiresInSeconds === undefined ? null : expiresInSeconds * 1000;
    const { transfer, ticket, expiresAt } = await engine.mintDownload(
      principal,
      requireHandle(handle),
      ttlMs,
    );
    const { filename, contentType, sizeBytes, sha256 } = transfer;
    const url = links.download(ticket, filename);
    const { expiresAt: fileExpiresAt, ...file } = transferFacts(transfer);
    return {
      facts: {
        ...file,
        ...(filename !== null && { filename }),
        url,
        expiresAt: expiresAt.toISOString(),
        ...(fileExpiresAt !== undefined && { fileExpiresAt }),
        ...(sha256 !== null && { sha256 }),
        commands: { curl: links.curlDownload(ticket, filename), cli: links.cliDownload(ticket, filename) },
        allowHost: links.allowHost,
        nextStep: `Run the command in commands.curl where the file is wanted, or open url (the network must allow ${links.allowHost}); then compare the sha256 of the copy.`,
      },
      links: [
        {
          type: "resource_link",
          uri: url,
          name: filename ?? transfer.handle,
          ...(contentType !== null && { mimeType: contentType }),
          ...(sizeBytes !== null && { size: sizeBytes }),
        },
      ],
    };
  },
});
