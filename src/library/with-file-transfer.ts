/**
 * File transfer on a user's server: the tools that hand out upload and download URLs, and the HTTP side that these lead to, as a Hono app
 * to mount in one's own. Only attaches: files and limits belong to the store.
 */
import { TransferError } from "../errors.ts";
import { requireHandle } from "../mcp/handle-argument.ts";
import type { ToolRegistrar } from "../mcp/registrar.ts";
import { defaultPrincipal, localPrincipal, sdkCallOf } from "../mcp/sdk-call.ts";
import { durableTaskTools } from "../mcp/tools/durable-task-tools.ts";
import { fileTaskTools } from "../mcp/tools/file-task-tools.ts";
import { fileTools } from "../mcp/tools/file-tools.ts";
import { createFilesSubApp, type FilesSubApp } from "../server/files-sub-app.ts";
import { isLoopbackHost } from "../server/loopback.ts";
import type { OpenedFile } from "../tasks/engine.ts";
import { openFile } from "../tasks/files.ts";
import { createLinks } from "../transfer/links.ts";
import { callsOf, type PrincipalOf } from "./calls.ts";
import type { Store } from "./open-store.ts";
import { registerFileKindsOnce } from "./task-kinds.ts";

/**
 * What {@link withFileTransfer} goes by.
 *
 * @example
 * const options: WithFileTransferOptions = { store, publicUrl: "https://files.example.com/transfer", fileTasks: true };
 */
export interface WithFileTransferOptions {
  readonly store: Store;
  /** Base of every URL handed out: where `app` is reached from outside, the path it is mounted under included. */
  readonly publicUrl: string;
  /** Default: from the `authInfo` that the SDK gives, else `local`. */
  readonly principalOf?: PrincipalOf;
  /**
   * Who creates an upload with a bare `POST /files`, without a tool; throw {@link TransferError} `unauthorized` where nobody may. Must not
   * read the body. Default: everybody, as `local`, where `publicUrl` is on this machine and `principalOf` is left out; else nobody.
   */
  readonly authenticate?: (request: Request) => string | Promise<string>;
  /**
   * Offers `file_import`, `file_checksum`, `file_archive` and `file_extract` too, and the `durable_task_*` tools by which they are followed.
   * Default: no, since every tool costs a model attention.
   */
  readonly fileTasks?: boolean;
  /** Host names that `app` answers to, besides loopback names and that of `publicUrl`. */
  readonly allowedHosts?: readonly string[];
  /** Origins of pages that may create uploads, besides loopback and that of `publicUrl`. */
  readonly allowedOrigins?: readonly string[];
}

/**
 * What {@link withFileTransfer} returns.
 *
 * @example
 * const files: FileTransfer = withFileTransfer(registrar, { store, publicUrl: "http://127.0.0.1:3000" });
 */
export interface FileTransfer {
  /**
   * The HTTP side, a Hono app: mount it with `app.route(path, files.app)`, or serve `files.app.fetch`. Uploads may take hours: it
   * sets Node's `requestTimeout` aside while one runs, and cuts a body that is silent for 45 s.
   */
  readonly app: FilesSubApp;
  /**
   * A finished upload of the caller's, as a stream or a path. In a task's handler use `ctx.files.open(handle)`.
   *
   * @param context the second argument of the tool's callback, which says who is calling; left out, `local`.
   * @throws TransferError `unknown_handle`, `not_active` while it is unfinished, `client_path_not_reachable` for a path; {@link toolError}
   *   makes a tool's result of it.
   * @example
   * const file = await files.open(handle, ctx);
   * for await (const piece of file.stream()) hash.update(piece);
   */
  open(handle: string, context?: unknown): Promise<OpenedFile>;
}

/**
 * Offers file transfer on a server: the tools `upload_create`, `upload_resume`, `upload_write`, `upload_status`, `file_list`, `file_read`,
 * `file_download` and `file_delete`, once, and the HTTP side for the URLs that they hand out.
 *
 * @example
 * const files = withFileTransfer(asToolRegistrar(mcp), { store, publicUrl: "http://127.0.0.1:3000/transfer" });
 * app.route("/transfer", files.app);
 */
export function withFileTransfer(registrar: ToolRegistrar, options: WithFileTransferOptions): FileTransfer {
  const { store, principalOf = defaultPrincipal, allowedHosts = [], allowedOrigins = [] } = options;
  const links = createLinks(options.publicUrl);
  const calls = callsOf(store, links, principalOf);
  for (const tool of fileTools) registrar.offer({ tool, calls });
  if (options.fileTasks === true) {
    registerFileKindsOnce(store);
    for (const tool of [...fileTaskTools, ...durableTaskTools]) registrar.offer({ tool, calls });
    registrar.serveTasks(calls);
  }
  const everybody = options.principalOf === undefined && isLoopbackHost(new URL(links.publicUrl).hostname);
  const authenticate = options.authenticate ?? (everybody ? () => localPrincipal : refuse);
  let app: FilesSubApp | undefined;
  return {
    // Made when it is asked for: a server built for each request has it from the first one.
    get app() {
      app ??= createFilesSubApp({
        engine: store.transfers,
        links,
        authenticate: async (request) => authenticate(request),
        allowedHosts,
        allowedOrigins,
        log: store.log,
      });
      return app;
    },
    async open(handle, context) {
      return openFile(store.transfers, await principalOf(sdkCallOf(context)), requireHandle(handle));
    },
  };
}

function refuse(): never {
  throw new TransferError("unauthorized", "Uploads are created by the tool upload_create here.", {
    recoveryHint: "Call upload_create, and send the bytes to the URL that it gives.",
  });
}
