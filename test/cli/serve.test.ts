/** The built server as its users start and stop it. */
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { run, start, startBuiltServer } from "../support/built-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { created, head, patch } from "../support/tus-requests.ts";
import { waitUntil } from "../support/wait-until.ts";

const shell = promisify(execFile);

describe("longshore serve", () => {
  test("is the default command, and prints both URLs, the data folder and one command that works as printed", async () => {
    const dir = await tempDir();
    const server = start(["--port", "0", "--min-free-bytes", "0"], { cwd: dir });
    await waitUntil(() => server.stdout().includes("Ctrl+C"));
    const [, mcpUrl = ""] = /MCP URL +(\S+)/.exec(server.stdout()) ?? [];
    expect(mcpUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    expect(server.stdout()).toContain(`tus URL      ${mcpUrl.replace("/mcp", "/files")}\n`);
    expect(server.stdout()).toMatch(new RegExp(`data folder  \\S*${path.basename(dir)}/storage\n`));
    const [, command = ""] = /^ {2}(curl .*)$/m.exec(server.stdout()) ?? [];
    const { stdout } = await shell("bash", ["-c", command], { cwd: dir });
    const readme = new URL("../../README.md", import.meta.url);
    expect(JSON.parse(stdout)).toMatchObject({
      handle: expect.stringMatching(/^fh_/),
      status: "complete",
      size: readFileSync(readme).length,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test("with --json prints one line of JSON and nothing else on stdout", async () => {
    const dataDir = path.join(await tempDir(), "data");
    const server = await startBuiltServer(dataDir);
    expect(JSON.parse(server.stdout())).toEqual({
      mcpUrl: `http://127.0.0.1:${server.port}/mcp`,
      tusUrl: `http://127.0.0.1:${server.port}/files`,
      dataDir,
      pid: server.pid,
    });
    await (await fetch(server.publicUrl)).text();
    server.kill("SIGTERM");
    await server.exit;
    expect(server.stdout().trimEnd().split("\n")).toHaveLength(1);
    for (const line of server.stderr().trimEnd().split("\n"))
      expect(JSON.parse(line)).toHaveProperty("event");
  });

  test("takes its settings from the file named by --config", async () => {
    const dir = await tempDir();
    await writeFile(
      path.join(dir, "longshore.json"),
      JSON.stringify({ dataDir: "kept-here", uploadTtl: "1h" }),
    );
    const running = start(["--json", "--port", "0", "--min-free-bytes", "0", "--config", "longshore.json"], {
      cwd: dir,
    });
    await waitUntil(() => running.stdout().includes("\n"));
    const { dataDir, tusUrl } = JSON.parse(running.stdout()) as { dataDir: string; tusUrl: string };
    expect(path.basename(dataDir)).toBe("kept-here");
    const answer = await fetch(tusUrl, {
      method: "POST",
      headers: { "Tus-Resumable": "1.0.0", "Upload-Length": "1" },
    });
    const expiresInMs = Date.parse(answer.headers.get("upload-expires") ?? "") - Date.now();
    expect(expiresInMs).toBeGreaterThan(3_500_000);
    expect(expiresInMs).toBeLessThan(3_700_000);
  });

  test("warns about unknown variables and starts all the same", async () => {
    const server = await startBuiltServer(await tempDir(), [], { env: { LONGSHORE_PROT: "1" } });
    expect(server.stderr()).toContain("did you mean LONGSHORE_PORT?");
  });

  test("on a port in use ends with 1, says what to do, and leaves the other server alone", async () => {
    const server = await startBuiltServer(await tempDir());
    const args = ["serve", "--port", String(server.port), "--data-dir", await tempDir()];
    const { status, stderr } = await run(args);
    expect(status).toBe(1);
    expect(stderr).toMatch(/Port \d+ on 127\.0\.0\.1 is in use.*--port or LONGSHORE_PORT/);
    const json = await run([...args, "--json"]);
    expect(json.status).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ status: "failed", error: { code: "invalid_param" } });
    expect((await fetch(`${server.publicUrl}/healthz`)).status).toBe(200);
  });

  test("with a data folder that cannot be one ends with 1, and names the path and what to do", async () => {
    const file = path.join(await tempDir(), "a-file");
    await writeFile(file, "");
    const folders = [
      file,
      path.join(file, "deeper"),
      ...(process.platform === "linux" ? ["/proc/nope"] : []),
    ];
    for (const dataDir of folders) {
      const { status, stderr } = await run(["serve", "--port", "0", "--data-dir", dataDir]);
      expect(status).toBe(1);
      expect(stderr).toMatch(/^The data folder .*--data-dir or LONGSHORE_DATA_DIR/);
      expect(stderr).toContain(dataDir);
    }
  });

  test.each(["keys", "oauth"])("with LONGSHORE_AUTH=%s ends with 2 and starts nothing", async (auth) => {
    const dataDir = path.join(await tempDir(), "data");
    const { status, stderr } = await run(["serve", "--port", "0", "--data-dir", dataDir], {
      env: { LONGSHORE_AUTH: auth },
    });
    expect(status).toBe(2);
    expect(stderr).toContain("this version knows only none");
    expect(existsSync(dataDir)).toBe(false);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "%s ends it with status 0, and nothing of it stays behind",
    async (signal) => {
      const dataDir = await tempDir();
      const server = await startBuiltServer(dataDir);
      // A connection that is kept alive must not hold it up.
      expect((await fetch(`${server.publicUrl}/readyz`)).status).toBe(200);
      const url = await created(server.publicUrl, { "Upload-Length": "10" });
      expect((await patch(url, 0, "hello")).status).toBe(204);
      const startedAt = performance.now();
      server.kill(signal);
      expect(await server.exit).toEqual({ status: 0, signal: null });
      expect(performance.now() - startedAt).toBeLessThan(5000);
      expect(server.stderr()).toContain('"event":"server.stopped","cut":false');
      const next = await startBuiltServer(dataDir);
      const answer = await head(url.replace(String(server.port), String(next.port)));
      expect(answer.headers.get("upload-offset")).toBe("5");
    },
  );

  test("two servers on one data folder know each other's uploads", async () => {
    const dataDir = await tempDir();
    const [one, two] = await Promise.all([startBuiltServer(dataDir), startBuiltServer(dataDir)]);
    const url = await created(one.publicUrl, { "Upload-Length": "10" });
    expect((await patch(url, 0, "hello")).status).toBe(204);
    const elsewhere = url.replace(String(one.port), String(two.port));
    expect((await patch(elsewhere, 5, "world")).status).toBe(204);
    expect((await head(url)).headers.get("longshore-status")).toMatch(/complete|verifying/);
  });

  test.runIf(process.platform === "linux")(
    "has threads enough for file work, unless the operator has set a number",
    async () => {
      const poolThreads = (pid: number): number =>
        readdirSync(`/proc/${pid}/task`).filter((task) =>
          readFileSync(`/proc/${pid}/task/${task}/comm`, "utf8").startsWith("libuv-worker"),
        ).length;
      const usual = await startBuiltServer(await tempDir());
      // The pool is made at its first use.
      await (await fetch(`${usual.publicUrl}/readyz`)).text();
      expect(poolThreads(usual.pid)).toBe(16);
      const set = await startBuiltServer(await tempDir(), [], { env: { UV_THREADPOOL_SIZE: "3" } });
      await (await fetch(`${set.publicUrl}/readyz`)).text();
      expect(poolThreads(set.pid)).toBe(3);
    },
  );
});
