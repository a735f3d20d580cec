/** Requests as the text that the clients send. */

export type HeaderFields = Readonly<Record<string, string | number>>;

export function requestHead(method: string, path: string, fields: HeaderFields): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${lines.join("")}\r\n`;
}

const tus = { "Tus-Resumable": "1.0.0" };
const offsetMedia = { "Content-Type": "application/offset+octet-stream" };

export const createHead = (sizeBytes: number): string =>
  requestHead("POST", "/files", { ...tus, "Upload-Length": sizeBytes, "Content-Length": 0 });

export const createWithHead = (sizeBytes: number): string =>
  requestHead("POST", "/files", {
    ...tus,
    ...offsetMedia,
    "Upload-Length": sizeBytes,
    "Content-Length": sizeBytes,
  });

export const patchHead = (path: string, offset: number, bytes: number): string =>
  requestHead("PATCH", path, { ...tus, ...offsetMedia, "Upload-Offset": offset, "Content-Length": bytes });

export const chunkedPatchHead = (path: string): string =>
  requestHead("PATCH", path, { ...tus, ...offsetMedia, "Upload-Offset": 0, "Transfer-Encoding": "chunked" });

export const putHead = (path: string, bytes: number): string =>
  requestHead("PUT", path, { "Content-Length": bytes });

export const chunkedPutHead = (path: string): string =>
  requestHead("PUT", path, { "Transfer-Encoding": "chunked" });

export const headHead = (path: string): string => requestHead("HEAD", path, tus);
