/**
 * One keep-alive connection that sends a request as text and reads its answer with as little work as HTTP allows: the client must
 * not be what is measured. Knows `Content-Length` bodies, `chunked` ones, and answers without a body.
 */
import { connect, type Socket } from "node:net";

export interface RawAnswer {
  readonly status: number;
  /** Status line and header fields, ended by an empty line. */
  readonly head: string;
  readonly bodyBytes: number;
}

interface Waiting {
  readonly isHead: boolean;
  readonly resolve: (answer: RawAnswer) => void;
  readonly reject: (error: Error) => void;
}

const bufferBytes = 256 * 1024;
const headEnd = "\r\n\r\n";

export class RawConnection {
  readonly #socket: Socket;
  #waiting: Waiting | null = null;
  /** Of the answer under way: its head once it is here, and how much of its body is still to come (null: chunked). */
  #head: { readonly text: string; readonly status: number; readonly bodyBytes: number } | null = null;
  #left: number | null = 0;
  #pending = "";

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static open(port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const holder: { connection: RawConnection | null } = { connection: null };
      const socket = connect({
        port,
        host: "127.0.0.1",
        noDelay: true,
        onread: {
          buffer: Buffer.allocUnsafeSlow(bufferBytes),
          callback: (bytes, buffer) => {
            holder.connection?.receive(buffer as Buffer, bytes);
            return true;
          },
        },
      });
      const connection = new RawConnection(socket);
      holder.connection = connection;
      socket.once("connect", () => resolve(connection));
      socket.on("error", (error) => {
        reject(error);
        connection.fail(error);
      });
      socket.on("close", () => connection.fail(new Error("the server closed the connection")));
    });
  }

  /** @param text the whole request, header fields and body, in latin1. One at a time. */
  send(text: string): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { isHead: text.startsWith("HEAD "), resolve, reject };
      this.#socket.write(text, "latin1");
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  receive(buffer: Buffer, bytes: number): void {
    if (this.#head !== null && this.#left !== null) {
      this.#left -= bytes;
      if (this.#left <= 0) this.#finish();
      return;
    }
    this.#pending += buffer.toString("latin1", 0, bytes);
    if (this.#head === null) this.#readHead();
    if (this.#head !== null && this.#left === null && this.#pending.endsWith("0\r\n\r\n")) this.#finish();
  }

  #readHead(): void {
    const end = this.#pending.indexOf(headEnd);
    if (end < 0) return;
    const text = this.#pending.slice(0, end + 2);
    const status = Number(text.slice(9, 12));
    const rest = this.#pending.length - end - headEnd.length;
    if (status < 200) {
      this.#pending = this.#pending.slice(end + headEnd.length);
      this.#readHead();
      return;
    }
    const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
    const isBodyless = this.#waiting?.isHead === true || status === 204 || status === 304;
    const bodyBytes = isBodyless || length === undefined ? 0 : Number(length);
    this.#head = { text, status, bodyBytes };
    if (!isBodyless && length === undefined && /\r\ntransfer-encoding: *chunked/i.test(text)) {
      this.#left = null;
      return;
    }
    this.#left = bodyBytes - rest;
    if (this.#left <= 0) this.#finish();
  }

  #finish(): void {
    const head = this.#head;
    const waiting = this.#waiting;
    this.#pending = "";
    this.#head = null;
    this.#left = 0;
    this.#waiting = null;
    if (head !== null && waiting !== null)
      waiting.resolve({ status: head.status, head: head.text, bodyBytes: head.bodyBytes });
  }

  fail(error: Error): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.reject(error);
  }
}
