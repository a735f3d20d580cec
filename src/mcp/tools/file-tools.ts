/** The tools that move and read files, in the order in which they are listed. */
import type { ToolDefinition } from "../tool-definition.ts";
import { fileDelete } from "./file-delete.ts";
import { fileDownload } from "./file-download.ts";
import { fileList } from "./file-list.ts";
import { fileRead } from "./file-read.ts";
import { uploadCreate } from "./upload-create.ts";
import { uploadResume } from "./upload-resume.ts";
import { uploadStatus } from "./upload-status.ts";
import { uploadWrite } from "./upload-write.ts";

export const fileTools: readonly ToolDefinition[] = [
  uploadCreate,
  uploadResume,
  uploadWrite,
  uploadStatus,
  fileList,
  fileRead,
  fileDownload,
  fileDelete,
];
