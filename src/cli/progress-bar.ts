/** Progress of a transfer on a terminal; silent where stderr is none. */
import type { Progress } from "../client/index.ts";

export interface ProgressBar {
  show(progress: Progress): void;
  /** What holds the transfer up, until it goes on. */
  say(trouble: string): void;
  /** Leaves the last state standing. */
  end(): void;
}

const everyMs = 100;
const width = 24;

export function createProgressBar(stream: NodeJS.WriteStream = process.stderr): ProgressBar {
  if (!stream.isTTY) return { show() {}, say() {}, end() {} };
  const startedAt = performance.now();
  let first: number | null = null;
  let shownAt = Number.NEGATIVE_INFINITY;
  let drawn = false;
  const draw = ({ bytes, sizeBytes }: Progress): void => {
    const seconds = (performance.now() - startedAt) / 1_000;
    // What was there before this run says nothing of its speed.
    const rate = seconds > 0 ? (bytes - (first ?? 0)) / seconds : 0;
    stream.write(`\r\u001b[K${progressLine(bytes, sizeBytes, rate)}`);
    drawn = true;
  };
  return {
    show(progress) {
      first ??= progress.bytes;
      const isLast = progress.bytes === progress.sizeBytes;
      if (!isLast && performance.now() - shownAt < everyMs) return;
      shownAt = performance.now();
      draw(progress);
    },
    say(trouble) {
      stream.write(`\r\u001b[K${trouble} Trying again.`);
      drawn = true;
    },
    end() {
      if (drawn) stream.write("\n");
    },
  };
}

/** One line; `rate` in bytes per second. */
function progressLine(bytes: number, sizeBytes: number | null, rate: number): string {
  const speed = rate > 0 ? `  ${shownBytes(rate)}/s` : "";
  if (sizeBytes === null) return `${shownBytes(bytes)}${speed}`;
  const part = sizeBytes === 0 ? 1 : Math.min(1, bytes / sizeBytes);
  const full = Math.round(part * width);
  const left = rate > 0 && bytes < sizeBytes ? `  ${shownDuration((sizeBytes - bytes) / rate)} left` : "";
  const bar = `[${"#".repeat(full)}${".".repeat(width - full)}]`;
  return `${bar} ${String(Math.floor(part * 100)).padStart(3)} %  ${shownBytes(bytes)} of ${shownBytes(sizeBytes)}${speed}${left}`;
}

export function shownBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 2 ** (10 * power);
  return `${power === 0 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

function shownDuration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes} min ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
