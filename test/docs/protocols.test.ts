/** The commands of docs/protocols.md work as they stand, one after the other, and what it lists is what the server says. */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { interopVersion } from "../../src/tus/resumable-protocol.ts";
import { program } from "../support/client-programs.ts";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import { codeBlocks, page, section } from "../support/markdown.ts";
import { describeWithProgram } from "../support/needs-program.ts";
import { tempDir } from "../support/temp-dir.ts";

const protocols = page("docs/protocols.md");
let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

test("every extension and algorithm that docs/protocols.md names is announced, and no other", async () => {
  const { headers } = await fetch(`${server.url}/files`, { method: "OPTIONS" });
  const [, list = ""] =
    /with ((?:`[a-z-]+`[,\s]*(?:and )?)+)\. `OPTIONS/.exec(section(protocols, "## tus 1.0.0")) ?? [];
  const named = [...list.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name);
  expect(named).toEqual(headers.get("tus-extension")?.split(","));
  for (const algorithm of headers.get("tus-checksum-algorithm")?.split(",") ?? [])
    expect(protocols).toContain(`\`${algorithm}\``);
});

test("docs/protocols.md names the interop version that is spoken", () => {
  expect(protocols).toContain(`interop version ${interopVersion}`);
  expect(protocols).toContain(`Upload-Draft-Interop-Version: ${interopVersion}`);
});

describeWithProgram("curl", "the commands of docs/protocols.md", () => {
  describeWithProgram("openssl", "which also need openssl", () => {
    test("run from top to bottom", async () => {
      const lines = codeBlocks(protocols, "sh").join("\n").replaceAll("http://127.0.0.1:8484", server.url);
      const script = path.join(await tempDir(), "commands.sh");
      await writeFile(script, `set -euxo pipefail\nURLS=""\n${lines}`);
      expect(await program("bash", [script])).toMatchObject({ status: 0 });
    });
  });
});
