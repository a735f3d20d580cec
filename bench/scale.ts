/** How large the workloads are: as the tables in the documentation show them, and small enough to try the harness. */

export interface Scale {
  /** The one large file. */
  readonly fileBytes: number;
  readonly patchBytes: number;
  readonly smallFiles: number;
  readonly smallBytes: number;
  /** To warm up: enough for the code of a server to be compiled. */
  readonly warmUpFiles: number;
  readonly streams: number;
  readonly streamBytes: number;
  /** Of a run that counts requests per second. */
  readonly rateMs: number;
  readonly ranges: number;
  readonly rangeBytes: number;
  /** Started over MCP in one run. */
  readonly tasks: number;
  /** Processes killed in one run. */
  readonly kills: number;
  readonly hugeBytes: number;
  readonly manyUploads: number;
  readonly manyBytes: number;
  readonly singleBytes: number;
  /** What must be free on each medium before anything starts. */
  readonly freeBytes: number;
}

const mib = 2 ** 20;
const gib = 2 ** 30;

export const fullScale: Scale = {
  fileBytes: gib,
  patchBytes: 8 * mib,
  smallFiles: 5_000,
  smallBytes: 1_024,
  warmUpFiles: 500,
  streams: 16,
  streamBytes: 64 * mib,
  rateMs: 2_000,
  ranges: 10_000,
  rangeBytes: 64 * 1_024,
  tasks: 1_000,
  kills: 2,
  hugeBytes: 10 * gib,
  manyUploads: 200,
  manyBytes: 16 * mib,
  singleBytes: mib,
  freeBytes: 8 * gib,
};

export const quickScale: Scale = {
  ...fullScale,
  fileBytes: 64 * mib,
  smallFiles: 200,
  warmUpFiles: 50,
  streamBytes: 4 * mib,
  rateMs: 300,
  ranges: 300,
  tasks: 200,
  kills: 1,
  hugeBytes: gib,
  manyUploads: 50,
  manyBytes: mib,
  singleBytes: mib / 16,
  freeBytes: 3 * gib,
};
