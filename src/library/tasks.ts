/** `longshore/tasks`: durable tasks on one's own MCP server. */
export { type ErrorBody, type ErrorCode, TransferError, type TransferErrorOptions } from "../errors.ts";
export { asToolRegistrar, type McpServerLike, type ToolRegistrar } from "../mcp/registrar.ts";
export type { CallerAuth, SdkCall } from "../mcp/sdk-call.ts";
export {
  type InputAnswer,
  InputRefused,
  type InputRequest,
  type JsonValue,
  type NeedInput,
  type OpenedFile,
  type StartTask,
  type StepContext,
  type StepOptions,
  type StopReason,
  type Task,
  type TaskEngine,
  type TaskFiles,
  type TaskPage,
  type TaskProgress,
  type TaskStatus,
  TaskStopped,
  type WrittenFile,
} from "../tasks/engine.ts";
export type { PrincipalOf } from "./calls.ts";
export { type OpenStoreOptions, openStore, type Store } from "./open-store.ts";
export type { TaskContext } from "./task-context.ts";
export type { AnySchema, Checked, ObjectSchema, Unchecked } from "./user-schema.ts";
export {
  type TaskHandler,
  type Tasks,
  type TaskToolConfig,
  type WithTasksOptions,
  withTasks,
} from "./with-tasks.ts";
