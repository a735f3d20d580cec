/** What the command line says to those who ask and to those who mistype. */
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { run } from "../support/built-server.ts";
import { tempDir } from "../support/temp-dir.ts";

describe("longshore", () => {
  test("--version says the version of the package", async () => {
    const manifest = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    expect(await run(["--version"])).toEqual({ status: 0, stdout: `${manifest.version}\n`, stderr: "" });
  });

  test.each([[["--help"]], [["help"]], [["serve", "--help"]], [["sweep", "--help"]], [["help", "sweep"]]])(
    "%j tells how it is used, on stdout",
    async (args) => {
      const { status, stdout, stderr } = await run(args);
      expect([status, stderr]).toEqual([0, ""]);
      expect(stdout).toMatch(/^Usage: longshore/);
    },
  );

  test("every command knows --json", async () => {
    for (const command of ["serve", "stdio", "sweep", "verify"])
      expect((await run([command, "--help"])).stdout, command).toContain("--json");
  });

  test.each([
    [["srve"], /unknown command 'srve'\. Did you mean serve\?/],
    [
      ["bananas"],
      /unknown command 'bananas'\. Commands: serve, stdio, put, get, status, ls, rm, tasks, task, sweep, verify, help\./,
    ],
    [["help", "srve"], /unknown command 'srve'\. Did you mean serve\?/],
    [["serve", "--prot", "1"], /unknown option '--prot'\n\(Did you mean --port\?\)/],
    [["serve", "extra"], /too many arguments/],
    [["--port"], /argument missing/],
  ])("%j ends with 2 and a hint on stderr", async (args, hint) => {
    const { status, stdout, stderr } = await run(args);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(hint);
  });

  test.each([
    [["srve", "--json"], "unknown command 'srve'. Did you mean serve?"],
    [["help", "srve", "--json"], "unknown command 'srve'. Did you mean serve?"],
    [["help", "--json", "srve"], "unknown command 'srve'. Did you mean serve?"],
    [["serve", "--json", "--prot", "1"], "unknown option '--prot' (Did you mean --port?)"],
    [["sweep", "extra", "--json"], /^too many arguments for 'sweep'/],
    [["--json", "--port"], /^option '--port <number>' argument missing$/],
    [["put", "--json"], "missing required argument 'file'"],
  ])("%j ends with 2 and one line of JSON, as every failure does with --json", async (args, message) => {
    const { status, stdout, stderr } = await run(args);
    expect([status, stderr]).toEqual([2, ""]);
    expect(stdout).toMatch(/^\{.*\}\n$/);
    expect(JSON.parse(stdout)).toEqual({
      status: "failed",
      error: {
        code: "invalid_param",
        message: typeof message === "string" ? message : expect.stringMatching(message),
        retryable: expect.any(Boolean),
        recoveryHint: expect.stringContaining("longshore help"),
      },
    });
  });

  test("behind -- the word --json is an argument like any other", async () => {
    const { status, stdout, stderr } = await run(["sweep", "--", "--json"]);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^error: too many arguments/);
  });

  test("help put tells that an interrupted put goes on at the URL that it prints", async () => {
    const { stdout } = await run(["help", "put"]);
    expect(stdout.replaceAll(/\s+/g, " ")).toContain("that an interrupted put prints goes on from there");
  });
});

describe("faults in the settings", () => {
  const env = { LONGSHORE_PORT: "http", LONGSHORE_UPLOAD_TTL: "24" };

  test("are all told at once, nothing starts, and the status is 2", async () => {
    const dataDir = path.join(await tempDir(), "storage");
    const { status, stdout, stderr } = await run(["--host", "0.0.0.0", "--data-dir", dataDir], { env });
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(
      /LONGSHORE_PORT: "http"[\s\S]*LONGSHORE_UPLOAD_TTL: "24"[\s\S]*--host: "0\.0\.0\.0"/,
    );
    await expect(readFile(dataDir)).rejects.toThrow(/ENOENT/);
  });

  test("are one line of JSON with --json", async () => {
    const { status, stdout } = await run(["sweep", "--json"], { env });
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      status: "failed",
      error: {
        code: "invalid_param",
        faults: [expect.stringContaining("LONGSHORE_PORT"), expect.any(String)],
      },
    });
  });

  test("in a settings file are told with its name", async () => {
    const file = path.join(await tempDir(), "settings.json");
    await writeFile(file, '{"port": "http"}');
    const { status, stderr } = await run(["--config", file]);
    expect(status).toBe(2);
    expect(stderr).toContain(`"port" in ${file}: "http" is not a port`);
  });
});
