/** `longshore/files`: file transfer on one's own MCP server. */
export { type ErrorBody, type ErrorCode, TransferError, type TransferErrorOptions } from "../errors.ts";
export { asToolRegistrar, type McpServerLike, type ToolRegistrar } from "../mcp/registrar.ts";
export type { CallerAuth, SdkCall } from "../mcp/sdk-call.ts";
export type { OpenedFile } from "../tasks/engine.ts";
export type { Transfer, TransferEngine } from "../transfer/engine.ts";
export type { PrincipalOf } from "./calls.ts";
export { type OpenStoreOptions, openStore, type Store } from "./open-store.ts";
export { type ToolErrorResult, toolError } from "./tool-error.ts";
export { type FileTransfer, type WithFileTransferOptions, withFileTransfer } from "./with-file-transfer.ts";
