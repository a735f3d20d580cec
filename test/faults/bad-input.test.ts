/**
 * Everything that should not be sent, sent to the built binary. No answer is a 5xx, what is stored stays as it is, nothing is written
 * outside the data folder, and the process lives on.
 */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { connect, type Facts, facts } from "../support/mcp-clients.ts";
import { http, offsetOf, tusCreate, tusHead } from "../support/plain-http.ts";
import { type RawAnswer, rawExchange, rawRequest } from "../support/raw-exchange.ts";
import { type Seeded, seeded } from "../support/seeded.ts";
import { useServer } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const running = useServer();

const tus = "Tus-Resumable: 1.0.0";
const offsetMedia = "Content-Type: application/offset+octet-stream";
const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString("base64");

let receivingUrl = "";
let receivingPath = "";
let pid = 0;
let before: Picture;

/** All that a caller, and somebody who looks at the disk, can see. */
interface Picture {
  readonly listed: readonly Facts[];
  readonly offset: number;
  readonly around: readonly string[];
  readonly canary: string;
}

async function picture(): Promise<Picture> {
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const listed: Facts[] = [];
  let cursor: string | undefined;
  do {
    const page = await facts(client, "file_list", { limit: 30, ...(cursor !== undefined && { cursor }) });
    listed.push(...(page.files as Facts[]));
    cursor = page.nextCursor as string | undefined;
  } while (cursor !== undefined);
  const names = await readdir(running.folder, { recursive: true });
  const inData = (name: string): boolean => name.startsWith(`data${path.sep}`);
  const dataNames = await readdir(running.server.dataDir);
  return {
    // The time an unfinished upload has left is not what it stores.
    listed: listed.map(({ expiresAt: _, ...rest }) => rest as Facts),
    offset: offsetOf(await tusHead(receivingUrl)),
    around: [...names.filter((name) => !inData(name)), ...dataNames].sort(),
    canary: await readFile(path.join(running.folder, "canary.txt"), "utf8"),
  };
}

beforeAll(async () => {
  await writeFile(path.join(running.folder, "canary.txt"), "not to be touched");
  await mkdir(path.join(running.folder, "beside"));
  await tusCreate(running.url, 5, { "Upload-Metadata": `filename ${base64("kept.txt")}` }, "hello");
  const receiving = await tusCreate(running.url, 100, {}, "0123456789");
  receivingUrl = String(receiving.headers.location);
  receivingPath = new URL(receivingUrl).pathname;
  pid = running.server.pid;
});

beforeEach(async () => {
  before = await picture();
  onTestFinished(async () => {
    expect(running.server.isRunning() && running.server.pid === pid).toBe(true);
    expect(await picture()).toEqual(before);
    expect(running.server.log()).not.toMatch(/internal_error|"level":"error"/);
  });
});

/** Sends it; a 5xx fails the test, with what was sent. What was created after all is removed again. */
async function survive(
  bytes: string | Uint8Array,
  then: "keep" | "end" | "reset" = "keep",
  withinMs = 1500,
): Promise<RawAnswer> {
  const answer = await rawExchange(running.server.port, bytes, { then, withinMs });
  const sent = typeof bytes === "string" ? JSON.stringify(bytes.slice(0, 2000)) : base64(bytes);
  if (answer.status !== null && answer.status >= 500)
    throw new Error(`${sent}\nwas answered with\n${answer.text}`);
  const location = /^location: (\S+)/im.exec(answer.text)?.[1];
  if (location !== undefined) {
    expect(new URL(location).origin, sent).toBe(running.url);
    expect((await http("DELETE", location, { headers: { "Tus-Resumable": "1.0.0" } })).status).toBe(204);
  }
  return answer;
}

const oddNumbers = [
  ...[
    "",
    " ",
    "-1",
    "-0",
    "+5",
    "1.5",
    "1e3",
    "0x10",
    "NaN",
    "Infinity",
    "null",
    "5 5",
    "5,5",
    "5;q=1",
    "\u00b2",
    "1_000",
  ],
  ...[
    "007",
    "00",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "18446744073709551616",
    "9".repeat(400),
  ],
];

const oddNames: readonly (string | Uint8Array)[] = [
  ...[
    "../../../../etc/passwd",
    "..\\..\\windows\\system32",
    "/etc/passwd",
    "C:\\x",
    ".",
    "..",
    "",
    " ",
    "\0",
    "a\0b",
    "a/../../b",
  ],
  ...[
    "a\r\nSet-Cookie: x=1",
    "a\nb",
    '"; filename="x',
    "a;b,c",
    "%2e%2e%2f",
    "CON",
    "nul.txt",
    "-rf",
    "~",
    "$(id)",
    "`id`",
  ],
  ...[
    "\u202egpj.exe",
    "💾".repeat(64),
    "汉字",
    "e\u0301",
    "\ufeff",
    "x".repeat(10_000),
    "../".repeat(3000),
    "🧨".repeat(2500),
  ],
  ...[Uint8Array.of(0xff, 0xfe, 0x00), Uint8Array.of(0xed, 0xa0, 0x80), Uint8Array.of(0xc0, 0xaf)],
];

/** Never what a position could be. */
function garbage(random: Seeded, most: number): string {
  const letters = random.pick([
    "\t !\"#$%&'()*+,-./:;<=>?@[]^_`{|}~",
    "abcXYZ019+/=",
    "\u0080\u00ff\u00e9\u00df",
    "\u0001\u0008\u007f\u001b",
    "%00%2e%2f%5c",
  ]);
  return Array.from({ length: random.between(0, most) }, () => random.pick([...letters])).join("");
}

describe("tus and PUT", () => {
  test("sizes and offsets that are none, or near 2^53, are refused", async () => {
    for (const number of oddNumbers) {
      await survive(rawRequest("POST", "/files", [tus, `Upload-Length: ${number}`]));
      await survive(rawRequest("POST", "/files", [tus, `Upload-Defer-Length: ${number}`]));
      for (const line of [`Upload-Offset: ${number}`, `Upload-Offset: 10\r\nUpload-Length: ${number}0`]) {
        const answer = await survive(
          rawRequest("PATCH", receivingPath, [tus, offsetMedia, line], line.includes("Length") ? "" : "x"),
        );
        expect([400, 409, 413, 204], answer.text).toContain(answer.status);
        if (answer.status === 204) expect(line).toContain("Length");
      }
      for (const range of [`bytes ${number}-5/10`, `bytes 0-${number}/10`, `bytes 0-5/${number}`, number])
        await survive(rawRequest("PUT", receivingPath, [`Content-Range: ${range}`], "x"));
    }
    const tooLong = await survive(
      rawRequest("PATCH", receivingPath, [tus, offsetMedia, "Upload-Offset: 10"], "x".repeat(91)),
    );
    expect(tooLong.status).toBe(413);
    const huge = rawRequest("PATCH", receivingPath, [
      tus,
      offsetMedia,
      "Upload-Offset: 10",
      `Content-Length: ${2 ** 53 + 2}`,
    ]);
    expect((await survive(huge)).status).toBe(413);
  });

  test("metadata of every bad kind is refused or kept as it is, and names never lead anywhere", async () => {
    for (const name of oddNames) {
      for (const key of ["filename", "name", "filetype", "sha256"])
        await survive(
          rawRequest("POST", "/files", [tus, "Upload-Length: 0", `Upload-Metadata: ${key} ${base64(name)}`]),
        );
    }
    const random = seeded();
    for (let count = 0; count < 150; count += 1) {
      const value = random.pick([garbage(random, 60), base64(random.bytes(random.between(0, 60)))]);
      const key = random.pick(["filename", "__proto__", "constructor", "toString", "", garbage(random, 12)]);
      await survive(
        rawRequest("POST", "/files", [tus, "Upload-Length: 3", `Upload-Metadata: ${key} ${value}`]),
      );
    }
  });

  test("a file with a bad name is downloaded under a harmless one", async () => {
    const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
    for (const name of oddNames) {
      const created = await tusCreate(
        running.url,
        5,
        { "Upload-Metadata": `filename ${base64(name)}` },
        "hello",
      );
      if (created.status !== 201) {
        expect([400, 431]).toContain(created.status);
        continue;
      }
      const handle = created.headers["longshore-handle"];
      const { url, commands } = await facts(client, "file_download", { handle });
      const download = await http("GET", String(url));
      expect([download.status, download.body.toString()]).toEqual([200, "hello"]);
      expect(download.headers["set-cookie"]).toBeUndefined();
      const said = String(download.headers["content-disposition"]);
      expect(said).toMatch(/^attachment/);
      // Quoted as RFC 9110 section 5.6.4 has it: after a backslash a character means itself.
      const quoted = /filename="((?:[^"\\]|\\.)*)"/.exec(said)?.[1]?.replaceAll(/\\(.)/g, "$1") ?? "";
      expect(quoted).not.toMatch(/[/\\\r\n]/);
      expect(commands.curl).not.toMatch(/-o '?(?:\.\.)?\//);
      await facts(client, "file_delete", { handle });
    }
  });

  test("header fields of random bytes on every route and method give no 5xx", async () => {
    const random = seeded();
    const fields = [
      ...[
        "Tus-Resumable",
        "Upload-Offset",
        "Upload-Length",
        "Upload-Metadata",
        "Upload-Concat",
        "Upload-Checksum",
        "Upload-Complete",
      ],
      ...[
        "Content-Type",
        "Content-Range",
        "Range",
        "If-Range",
        "If-None-Match",
        "If-Match",
        "If-Modified-Since",
        "Expect",
        "Origin",
      ],
      ...[
        "X-HTTP-Method-Override",
        "X-Request-ID",
        "Authorization",
        "Content-Digest",
        "Repr-Digest",
        "Accept-Encoding",
        "Cookie",
      ],
      ...[
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "Forwarded",
        "Content-Encoding",
        "Transfer-Encoding",
        "Access-Control-Request-Method",
      ],
    ];
    const methods = [
      "GET",
      "HEAD",
      "POST",
      "PATCH",
      "PUT",
      "DELETE",
      "OPTIONS",
      "TRACE",
      "PROPFIND",
      "QUERY",
      "BREW",
    ];
    const targets = [
      "/files",
      "/files/",
      "/files/x",
      "/files/x/y",
      "/d/x/y",
      "/d",
      "/mcp",
      "/",
      "/healthz",
      "/readyz",
      "/nothing",
    ];
    await inTurns(300, 8, async () => {
      const lines = Array.from(
        { length: random.between(1, 5) },
        () => `${random.pick(fields)}: ${garbage(random, 40)}`,
      );
      const known = random.between(0, 2) === 0 ? [tus] : [];
      await survive(
        rawRequest(random.pick(methods), random.pick(targets), [...known, ...lines], garbage(random, 20)),
      );
    });
  });

  test("ids that are none are unknown, whatever they look like", async () => {
    const random = seeded();
    const ids = [
      ...[
        "..",
        ".",
        "%2e%2e",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%00",
        "a%00b",
        "%",
        "%zz",
        "%ff%fe",
        "fh_x",
        "null",
        "undefined",
      ],
      ...[
        "__proto__",
        "constructor",
        "*",
        "'--",
        "1 OR 1=1",
        "a".repeat(10_000),
        "%F0%9F%92%A9",
        "..;/",
        "a?b#c",
        "\\..\\",
        "$(id)",
      ],
      ...Array.from({ length: 40 }, () => garbage(random, 30).replaceAll(/\s/g, "")),
    ];
    await inTurns(ids.length, 8, async (turn) => {
      const id = String(ids[turn]);
      for (const method of ["HEAD", "PATCH", "DELETE", "PUT", "GET"]) {
        const lines = [tus, offsetMedia, "Upload-Offset: 0"];
        const { status, text } = await survive(
          rawRequest(method, `/files/${id}`, lines, method === "PATCH" || method === "PUT" ? "x" : ""),
        );
        // Dots that lead out of the folder are taken out of a path by every URL parser; then another route answers.
        const { pathname } = new URL(`/files/${id}`, running.url);
        if (pathname.startsWith("/files/"))
          expect([400, 404, 405, 412, 414, 415, 431, null], text).toContain(status);
        await survive(rawRequest("GET", `/d/${id}/${id}`, []));
      }
    });
  });
});

/** Runs `work` for each turn, some at once. */
async function inTurns(turns: number, atOnce: number, work: (turn: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < turns) {
      next += 1;
      await work(next - 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

describe("MCP", () => {
  const tools = [
    "upload_create",
    "upload_resume",
    "upload_write",
    "upload_status",
    "file_list",
    "file_read",
    "file_download",
    "file_delete",
  ];
  const members = [
    "handle",
    "filename",
    "size",
    "sha256",
    "offset",
    "data",
    "final",
    "waitMs",
    "limit",
    "cursor",
    "status",
    "length",
    "encoding",
  ];
  const values: readonly unknown[] = [
    ...[
      null,
      true,
      -1,
      0.5,
      2 ** 53,
      2 ** 53 + 2,
      -(2 ** 53),
      1e308,
      0,
      "",
      "\0",
      "../x",
      "fh_",
      "x".repeat(10_000),
      [],
      {},
      [[]],
      [null],
    ],
    ...[
      "/etc/passwd",
      "=",
      "====",
      "YQ",
      "YQ==\n",
      "Y Q = =",
      "\ud800",
      { toString: 1 },
      { __proto__: 1 },
      "file:///etc/passwd",
      "complete",
    ],
  ];

  async function post(body: string, type = "application/json"): Promise<string> {
    const answer = await http("POST", running.server.mcpUrl, {
      headers: { "Content-Type": type, Accept: "application/json, text/event-stream" },
      body,
    });
    if (answer.status >= 500)
      throw new Error(`${body.slice(0, 2000)}\nwas answered with ${answer.status} ${answer.body}`);
    return answer.body.toString();
  }

  test("tool calls with arguments of any kind answer with the envelope and change nothing", async () => {
    const random = seeded();
    for (let count = 0; count < 300; count += 1) {
      const name = random.pick(tools);
      const args = Object.fromEntries(
        Array.from({ length: random.between(0, 5) }, () => [random.pick(members), random.pick(values)]),
      );
      const body = JSON.stringify({
        jsonrpc: "2.0",
        id: count,
        method: "tools/call",
        params: { name, arguments: args },
      });
      const text = await post(body);
      expect(text, body.slice(0, 1000)).not.toMatch(/internal_error|-32603/);
      const handle = /"handle\\?": ?\\?"(fh_[a-z2-7]+)/.exec(text)?.[1];
      if (name === "upload_create" && handle !== undefined) {
        await post(
          JSON.stringify({
            jsonrpc: "2.0",
            id: 1,
            method: "tools/call",
            params: { name: "file_delete", arguments: { handle } },
          }),
        );
      }
    }
  });

  test("bodies that are no JSON-RPC are refused", async () => {
    const random = seeded();
    const bodies = [
      ...[
        "",
        "{",
        "[]",
        "null",
        "1",
        '"x"',
        "[[[[",
        "{}",
        '{"jsonrpc":"1.0"}',
        '{"jsonrpc":"2.0","id":{},"method":[]}',
        "\ufeff{}",
      ],
      ...[
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        '{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
        "[".repeat(50_000),
      ],
      ...[
        '{"jsonrpc":"2.0","id":1,"method":"__proto__"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"constructor"}}',
      ],
      ...[
        `{"a":${'{"a":'.repeat(5000)}1${"}".repeat(5000)}}`,
        JSON.stringify({ jsonrpc: "2.0", id: 1, method: "x".repeat(100_000) }),
      ],
      ...Array.from({ length: 40 }, () => random.bytes(random.between(1, 80)).toString("latin1")),
    ];
    for (const body of bodies) {
      await post(body);
      await post(
        body,
        random.pick([
          "text/plain",
          "application/x-www-form-urlencoded",
          "application/json; charset=utf-16",
          "",
        ]),
      );
    }
  });
});

describe("the socket", () => {
  test("bytes that are no HTTP, and HTTP that is broken, are refused or cut off", async () => {
    const random = seeded();
    const head = rawRequest("PATCH", receivingPath, [
      tus,
      offsetMedia,
      "Upload-Offset: 11",
      "Transfer-Encoding: chunked",
    ]);
    const sendings: (string | Uint8Array)[] = [
      ...[
        "\r\n\r\n",
        "\0\0\0\0",
        "GET\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "SSH-2.0-x\r\n",
      ],
      ...[
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
      ],
      ...[
        "GET * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
      ],
      ...[
        `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${"x".repeat(70_000)}\r\n\r\n`,
        `GET /${"x".repeat(70_000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
      ],
      ...[
        `${head}zz\r\nhello\r\n0\r\n\r\n`,
        `${head}-1\r\nx\r\n`,
        `${head}ffffffffffffffffff\r\nx`,
        `${head}5\r\nhelloworld\r\n0\r\n\r\n`,
      ],
      ...[
        "POST /files HTTP/1.1\r\nHost: 127.0.0.1\r\nTus-Resumable: 1.0.0\r\nUpload-Length: 5\r\nContent-Length: -5\r\n\r\n",
      ],
      ...[
        "POST /files HTTP/1.1\r\nHost: 127.0.0.1\r\nTus-Resumable: 1.0.0\r\nUpload-Length: 5\r\nContent-Length: 1, 2\r\n\r\nx",
      ],
      ...[
        "POST /files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      ],
      ...[
        "POST /files HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip\r\n\r\nx",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
      ],
      Uint8Array.of(0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03),
      ...Array.from({ length: 40 }, () => random.bytes(random.between(1, 300))),
    ];
    await inTurns(sendings.length, 16, async (turn) => {
      await survive(sendings[turn] ?? "", "end");
    });
  });

  test("requests that break off anywhere leave nothing behind but bytes that count", async () => {
    const random = seeded();
    const whole = rawRequest("PATCH", receivingPath, [tus, offsetMedia, "Upload-Offset: 99"], "x");
    const create = rawRequest("POST", "/files", [tus, "Upload-Length: nothing"]);
    await inTurns(60, 12, async () => {
      const request = random.pick([whole, create]);
      const cut = request.slice(0, random.between(0, request.length));
      await survive(cut, random.pick(["end", "reset"]), 800);
    });
    // A body that breaks off keeps what came; here nothing may come that is wanted.
    const { status } = await survive(
      rawRequest("PATCH", receivingPath, [tus, offsetMedia, "Upload-Offset: 11", "Content-Length: 50"]),
      "end",
    );
    expect([400, 409]).toContain(status);
    await waitUntil(async () => (await http("GET", `${running.url}/healthz`)).status === 200);
  });
});
