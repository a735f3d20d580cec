/** How large the workloads are: as the tables in the documentation show them, and small enough to try the harness. */

export interface Scale {
  /** The one large file. */
  readonly fileBytes: number;
  readonly patchBytes: number;
  readonly smallFiles: number;
  readonly smallBytes: number;
  readonly streams: number;
  readonly streamBytes: number;
  /** Of a run that counts requests per second. */
  readonly rateMs: number;
  readonly ranges: number;
  readonly rangeBytes: number;
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
  streams: 16,
  streamBytes: 64 * mib,
  rateMs: 2_000,
  ranges: 10_000,
  rangeBytes: 64 * 1_024,
  hugeBytes: 10 * gib,
  manyUploads: 200,
  manyBytes: 16 * mib,
  singleBytes: mib,
  freeBytes: 8 * gib,
};

export const quickScale: Scale = {
  ...fullScale,
  fileBytes: 256 * mib,
  smallFiles: 600,
  streamBytes: 16 * mib,
  rateMs: 500,
  ranges: 1_000,
  hugeBytes: gib,
  manyBytes: 4 * mib,
  singleBytes: mib / 4,
  freeBytes: 3 * gib,
};
