/** What no HTTP client would send: bytes straight onto a socket, and the first status line that comes back. */
import { connect } from "node:net";

export interface RawAnswer {
  /** Null where the connection ended, or the time was up, without a status line. */
  readonly status: number | null;
  /** Everything received, one character a byte. */
  readonly text: string;
}

export interface RawOptions {
  /** What becomes of the connection after sending; default `keep`: it is held until an answer comes. */
  readonly then?: "keep" | "end" | "reset";
  readonly withinMs?: number;
}

/** Never rejects. */
export function rawExchange(
  port: number,
  bytes: string | Uint8Array,
  options: RawOptions = {},
): Promise<RawAnswer> {
  const { then = "keep", withinMs = 1500 } = options;
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const settle = (): void => {
      clearTimeout(timer);
      socket.destroy();
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1];
      resolve({ status: status === undefined ? null : Number(status), text });
    };
    const timer = setTimeout(settle, withinMs);
    socket.on("error", () => {});
    socket.on("close", settle);
    socket.on("end", settle);
    socket.on("data", (piece) => {
      text += piece.toString("latin1");
      // The head is all that matters, after interim answers.
      text = text.replace(/^HTTP\/1\.1 1\d\d .*\r\n(?:.+\r\n)*\r\n/, "");
      if (text.includes("\r\n\r\n")) settle();
    });
    socket.on("connect", () => {
      socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes, () => {
        if (then === "end") socket.end();
        else if (then === "reset") {
          socket.resetAndDestroy();
          settle();
        }
      });
    });
  });
}

/** A request of these header lines. Text is sent byte for byte (latin-1). */
export function rawRequest(method: string, target: string, lines: readonly string[], body = ""): string {
  return [
    `${method} ${target} HTTP/1.1`,
    "Host: 127.0.0.1",
    "Connection: close",
    ...lines,
    ...(body === "" ? [] : [`Content-Length: ${Buffer.byteLength(body, "latin1")}`]),
    "",
    body,
  ].join("\r\n");
}
