/**
 * Longshore as a library: file transfer and durable tasks on one's own MCP server. Nothing else of this package is public but
 * `longshore/tasks`, `longshore/files` (each a part of this) and `longshore/client`.
 */
export * from "./library/files.ts";
export * from "./library/tasks.ts";
