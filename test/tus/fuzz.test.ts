/**
 * Rubbish in every place that a caller controls. Whatever it is, the answer is never a 5xx, the server goes on, and nothing is
 * logged as a fault of its own.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type FilesServer, RawConnection, startFilesServer } from "../support/http-server.ts";
import { base64, created, head, offsetMedia, patch, stored } from "../support/tus-requests.ts";

let server: FilesServer;
let uploadPath: string;
let downloadPath: string;
beforeAll(async () => {
  server = await startFilesServer({ idleTimeoutMs: 2_000 });
  uploadPath = new URL(await created(server.url, { "Upload-Length": "1000000" })).pathname;
  const handle = await stored(server.url, Buffer.from("0123456789"));
  const { ticket } = await server.engine.mintDownload("local", handle, null);
  downloadPath = new URL(server.links.download(ticket, "x")).pathname;
});
afterAll(() => server.close());

/** Always the same sequence, so that a failure comes again. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const numbers = [
  "0",
  "1",
  "-0",
  "-1",
  "+5",
  "00",
  "1.5",
  "1e9",
  "0x1F",
  "٣",
  "NaN",
  "Infinity",
  "",
  " ",
  "1 2",
  "1,2",
  "999999",
  "1000000",
  "1000001",
  "9007199254740990",
  "9007199254740991",
  "9007199254740992",
  "9007199254740993",
  "18446744073709551615",
  "18446744073709551616",
  "9".repeat(300),
  "1".repeat(20),
];
const words = [
  "1.0.0",
  "bytes 0-2/3",
  "bytes 0--1/0",
  "bytes */3",
  "bytes=0-",
  "bytes=-1",
  "bytes=0-0,2-2",
  '"x"',
  'W/"x"',
  "*",
  "a YQ==",
  "a !",
  "filename",
  `filename ${base64("a\u0000b")}`,
  `filename ${base64("é".repeat(600))}`,
  `sha256 ${base64("x")}`,
  "constructor YQ==",
  "__proto__",
  ",",
  ",,",
  "PATCH",
  "DELETE",
  "HEAD",
  "TRACE",
  offsetMedia,
  "application/partial-upload",
  "text/html",
  ";",
  "?1",
  "?0",
  "Thu, 01 Jan 1970 00:00:00 GMT",
  "\u00ff\u00fe",
  "x".repeat(2000),
  "%00",
  "{{x}}",
  "sha1 YQ==",
  "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
  "sha512 YQ==",
  "md5",
  "crc32c AAAAAA==",
  "upload-checksum",
  "Upload-Checksum, Upload-Checksum",
  "final;/files/a /files/b",
  "final;",
  "final;http://[",
  "final;//// %00 ../.. ?x #y",
  "partial",
  "?1;a=b",
  "(?1)",
  "9",
  "sha-256=:YQ==:",
  `sha-256=:${Buffer.alloc(32).toString("base64")}:`,
  "sha-512=:::",
  "sha-256=(:YQ==:)",
  "inline; filename*=UTF-8''%ff%00",
  'inline; filename="',
];
const names = [
  "Tus-Resumable",
  "Upload-Length",
  "Upload-Offset",
  "Upload-Defer-Length",
  "Upload-Metadata",
  "Upload-Concat",
  "Upload-Checksum",
  "Upload-Complete",
  "Upload-Draft-Interop-Version",
  "X-HTTP-Method-Override",
  "X-Request-ID",
  "Content-Type",
  "Content-Range",
  "Content-Digest",
  "Content-Disposition",
  "Repr-Digest",
  "Trailer",
  "Expect",
  "Range",
  "If-Range",
  "If-Match",
  "If-None-Match",
  "If-Modified-Since",
  "If-Unmodified-Since",
  "Origin",
  "Access-Control-Request-Method",
  "Authorization",
  "Accept-Encoding",
  "Content-Encoding",
];
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

function pathsFor(random: (below: number) => number): string {
  const odd = [
    "%00",
    "%2e%2e%2f",
    "%ff%fe",
    "%",
    "a".repeat(1000),
    "ticket with space".replaceAll(" ", "%20"),
    "..;",
    "\u00e9",
    "%E2%82%AC",
  ];
  const pick = odd[random(odd.length)] ?? "";
  const all = [
    "/files",
    "/files/",
    uploadPath,
    `${uploadPath}/`,
    `${uploadPath}/${pick}`,
    downloadPath,
    `/files/${pick}`,
    `/d/${pick}`,
    `/d/${pick}/${pick}`,
  ];
  return `${all[random(all.length)]}${random(4) === 0 ? `?${pick}` : ""}`;
}

test("random header fields, numbers and paths never give a 5xx", { timeout: 120_000 }, async () => {
  const random = randomOf(7);
  const pick = (list: readonly string[]): string => list[random(list.length)] ?? "";
  for (let round = 0; round < 2500; round += 1) {
    const tus = random(3) > 0;
    const fields: string[] = tus ? ["Tus-Resumable: 1.0.0"] : [];
    if (!tus && random(2) === 0)
      fields.push(`Upload-Complete: ?${random(2)}`, `Upload-Draft-Interop-Version: ${random(3) + 8}`);
    for (let count = random(6); count > 0; count -= 1)
      fields.push(`${pick(names)}: ${random(2) === 0 ? pick(numbers) : pick(words)}`);
    if (random(2) === 0)
      fields.push(
        `Upload-Offset: ${pick(numbers)}`,
        `Content-Type: ${tus ? offsetMedia : "application/partial-upload"}`,
      );
    if (random(2) === 0) fields.push(`Upload-Length: ${pick(numbers)}`);
    const body = pick(["", "a", "abc", "x".repeat(5000)]);
    const framing = random(3) === 0 ? "Transfer-Encoding: chunked" : `Content-Length: ${body.length}`;
    const method = pick(methods);
    const lines = [
      `${method} ${pathsFor(random)} HTTP/1.1`,
      "Host: x",
      "Connection: close",
      framing,
      ...fields,
    ];
    const trailer = random(3) === 0 ? `Upload-Checksum: ${pick(words)}\r\n` : "";
    const raw = new RawConnection(server.port);
    raw.head(...lines);
    raw.write(
      framing.startsWith("T")
        ? `${body === "" ? "" : `${body.length.toString(16)}\r\n${body}\r\n`}0\r\n${trailer}\r\n`
        : body,
    );
    const answer = await raw.ended();
    expect(answer, lines.join("\n")).toMatch(/^(HTTP\/1\.1 10[04] [\s\S]*?\r\n\r\n)*HTTP\/1\.1 [234]\d\d /);
  }
  expect(
    server.logged.filter(({ event, code }) => event === "request_failed" && code === "internal_error"),
  ).toEqual([]);
});

test("random metadata is either kept byte for byte or refused with 400 or 431", {
  timeout: 120_000,
}, async () => {
  const random = randomOf(11);
  const letters = "abcXYZ019+/=, \t!\"#$%&'()*-.:;<>?@[]^_`{|}~\u0080\u00ff";
  let kept = 0;
  for (let round = 0; round < 800; round += 1) {
    let text = "";
    for (let count = random(40); count > 0; count -= 1) text += letters[random(letters.length)] ?? "";
    if (random(2) === 0) text = `k${round} ${Buffer.from(text, "latin1").toString("base64")}`;
    const sent = text.replaceAll(/^[ \t]+|[ \t]+$/g, "");
    const response = await fetch(`${server.url}/files`, {
      method: "POST",
      headers: { "Tus-Resumable": "1.0.0", "Upload-Length": "1", "Upload-Metadata": text },
    });
    expect([201, 400, 431], `${response.status} for ${JSON.stringify(text)}`).toContain(response.status);
    if (response.status !== 201) continue;
    kept += 1;
    expect((await head(response.headers.get("location") ?? "")).headers.get("upload-metadata")).toBe(sent);
  }
  expect(kept).toBeGreaterThan(300);
});

test.each([
  "",
  ".",
  "..",
  "/",
  "\\",
  "../../etc/passwd",
  "C:\\x",
  "a\u0000b",
  "\u0000",
  "a\r\nb",
  "\u001b[2J",
  "CON",
  "x".repeat(1024),
  "x".repeat(10_000),
  "é".repeat(512),
  "🚢".repeat(256),
  "\u202egnp.exe",
  "\u200b",
  "e\u0301",
  '"; filename=evil',
  "%00",
  "%2e%2e%2f",
  "\ufffd",
  "a/b/c",
  " lead",
  "trail ",
  "?#&=+",
  "名前",
  "\ud83d",
])("a file named %j can be uploaded and downloaded, or is refused with a 4xx", async (filename) => {
  const response = await fetch(`${server.url}/files`, {
    method: "POST",
    headers: {
      "Tus-Resumable": "1.0.0",
      "Upload-Length": "3",
      "Upload-Metadata": `filename ${base64(filename)}`,
    },
  });
  if (Buffer.byteLength(filename) > 1024) {
    expect([400, 431]).toContain(response.status);
    return;
  }
  expect(response.status).toBe(201);
  const url = response.headers.get("location") ?? "";
  expect((await patch(url, 0, "abc")).status).toBe(204);
  const handle = (await head(url)).headers.get("longshore-handle") ?? "";
  const { ticket, transfer } = await server.engine.mintDownload("local", handle, null);
  const got = await fetch(server.links.download(ticket, transfer.filename));
  expect([got.status, await got.text()]).toEqual([200, "abc"]);
});

test("sizes near 2^53 are kept exactly or refused", async () => {
  const huge = await startFilesServer({ limits: { maxFileBytes: Number.MAX_SAFE_INTEGER } });
  try {
    const url = await created(huge.url, { "Upload-Length": "9007199254740991" });
    expect((await head(url)).headers.get("upload-length")).toBe("9007199254740991");
    expect((await patch(url, "9007199254740990", "ab")).status).toBeGreaterThanOrEqual(400);
    expect((await patch(url, "9007199254740991", "")).status).toBe(409);
    const options = await fetch(`${huge.url}/files`, { method: "OPTIONS" });
    expect(options.headers.get("tus-max-size")).toBe("9007199254740991");
    const put = await fetch(url, {
      method: "PUT",
      headers: { "Content-Range": "bytes 9007199254740990-9007199254740990/9007199254740991" },
      body: "a",
    });
    expect(put.status).toBe(409);
  } finally {
    await huge.close();
  }
});
