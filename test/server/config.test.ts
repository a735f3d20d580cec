import { writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigError, type ConfigSources, loadConfig, widenThreadPool } from "../../src/server/config.ts";
import { nearestName } from "../../src/server/nearest-name.ts";
import { flagOf, settingNames, settings, variableOf } from "../../src/server/settings.ts";
import { tempDir } from "../support/temp-dir.ts";

function load(sources: ConfigSources = {}) {
  return loadConfig({ env: {}, workingDir: "/work-dir", ...sources });
}

function faultsOf(sources: ConfigSources): readonly string[] {
  try {
    load(sources);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.faults;
    throw thrown;
  }
  throw new Error("no fault was found");
}

async function settingsFile(content: unknown): Promise<string> {
  const file = path.join(await tempDir(), "longshore.json");
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

describe("settings", () => {
  test("where nobody says anything the defaults hold, and they are what is shown for them", () => {
    const { config, warnings } = load();
    expect(warnings).toEqual([]);
    expect(config).toMatchObject({
      host: "127.0.0.1",
      port: 8484,
      publicUrl: null,
      dataDir: path.resolve("/work-dir/storage"),
      maxFileBytes: 2 ** 40,
      quotaBytes: null,
      quotaFiles: null,
      minFreeBytes: 2 ** 30,
      uploadTtl: 24 * 3_600_000,
      fileTtl: null,
      downloadTtl: 3_600_000,
      inlineChunkBytes: 262_144,
      inlineFileBytes: 4_194_304,
      fsync: "always",
      log: "info",
      allowedOrigins: [],
      trustProxy: false,
      insecure: false,
    });
    for (const name of settingNames) {
      const { read, shown, fallback } = settings[name];
      if (name !== "publicUrl" && name !== "allowedOrigins") expect(read(shown)).toEqual(fallback);
    }
  });

  test("a setting has one name in three spellings", () => {
    expect(variableOf("maxFileBytes")).toBe("LONGSHORE_MAX_FILE_BYTES");
    expect(flagOf("maxFileBytes")).toBe("--max-file-bytes");
  });

  test("a flag comes before the environment, and that before the file", async () => {
    const configFile = await settingsFile({ port: 1, uploadTtl: "1h", maxFileBytes: "1MB" });
    const env = { LONGSHORE_PORT: "2", LONGSHORE_UPLOAD_TTL: "2h" };
    const { config } = load({ configFile, env, flags: { port: "3" } });
    expect(config).toMatchObject({ port: 3, uploadTtl: 7_200_000, maxFileBytes: 1_000_000 });
  });

  test("an empty variable counts as none", () => {
    expect(load({ env: { LONGSHORE_PORT: "", LONGSHORE_DATA_DIR: "" } }).config.port).toBe(8484);
  });

  test("a relative data folder starts at the working folder, in a settings file at the file's", async () => {
    const configFile = await settingsFile({ dataDir: "data" });
    expect(load({ configFile }).config.dataDir).toBe(path.join(path.dirname(configFile), "data"));
    expect(load({ env: { LONGSHORE_DATA_DIR: "data" } }).config.dataDir).toBe(path.resolve("/work-dir/data"));
    expect(load({ flags: { dataDir: "/srv/data" } }).config.dataDir).toBe(path.resolve("/srv/data"));
  });

  test("relative folders for imports start at the same place", () => {
    const { config } = load({ env: { LONGSHORE_IMPORT_ROOTS: "in, /srv/in" } });
    expect(config.importRoots).toEqual([path.resolve("/work-dir/in"), path.resolve("/srv/in")]);
  });

  test("a settings file takes numbers, switches, lists, and the names of variables and flags", async () => {
    const configFile = await settingsFile({
      LONGSHORE_PORT: 9000,
      "quota-files": 10,
      insecure: true,
      allowedOrigins: ["https://a.example", "https://b.example"],
    });
    expect(load({ configFile }).config).toMatchObject({
      port: 9000,
      quotaFiles: 10,
      insecure: true,
      allowedOrigins: ["https://a.example", "https://b.example"],
    });
  });

  test("all faults of all sources are told at once, each with the name that the person used", async () => {
    const configFile = await settingsFile({ fsync: "sometimes", prot: 1, log: null });
    const faults = faultsOf({
      configFile,
      flags: { port: "99999" },
      env: { LONGSHORE_UPLOAD_TTL: "24", LONGSHORE_MAX_FILE_BYTES: "big", LONGSHORE_HOST: "0.0.0.0" },
    });
    expect(faults).toEqual([
      `${configFile}: "prot" is no setting; did you mean "port"?`,
      `${configFile}: "log" must be a string, a number, true or false, or a list of strings.`,
      '--port: "99999" is not a port (0 to 65535; 0 takes any free one).',
      'LONGSHORE_MAX_FILE_BYTES: "big" is not a size, such as 1GiB, 500MB or plain bytes.',
      'LONGSHORE_UPLOAD_TTL: "24" is not a duration, such as 30m, 24h or 7d.',
      `"fsync" in ${configFile}: "sometimes" is none of always, never.`,
      expect.stringMatching(/^LONGSHORE_HOST: .* lets other machines in/),
      expect.stringMatching(/^LONGSHORE_HOST: .* does not say how this server is reached/),
    ]);
  });

  test("authentication that is asked for and not there is a fault, since an open server is not what was meant", () => {
    const asked = (source: string, value: string) =>
      `${source}: "${value}" asks for authentication, and this version knows only none: everybody who reaches the server may do everything.`;
    for (const value of ["keys", "oauth"]) {
      expect(faultsOf({ env: { LONGSHORE_AUTH: value } })).toEqual([asked("LONGSHORE_AUTH", value)]);
      expect(faultsOf({ env: {}, flags: { auth: value } })).toEqual([asked("--auth", value)]);
    }
    expect(loadConfig({ env: { LONGSHORE_AUTH: "none" } })).toMatchObject({ warnings: [] });
  });

  test.each([
    ["no file", "/nowhere/longshore.json", /there is no such file/],
    ["a folder", "/", /it is a folder/],
  ])("a settings file that is %s is a fault", (_what, configFile, reason) => {
    expect(faultsOf({ configFile })).toEqual([expect.stringMatching(reason)]);
  });

  test("a settings file that is no JSON object is a fault", async () => {
    expect(faultsOf({ configFile: await settingsFile("port = 1") })).toEqual([
      expect.stringMatching(/is not JSON/),
    ]);
    expect(faultsOf({ configFile: await settingsFile([1]) })).toEqual([
      expect.stringMatching(/is not a JSON object/),
    ]);
    expect(faultsOf({ configFile: await settingsFile({ port: 1, LONGSHORE_PORT: 2 }) })).toEqual([
      expect.stringMatching(/are the same setting/),
    ]);
  });

  test("a host that others can reach is refused, unless the operator says that he knows", () => {
    expect(faultsOf({ env: { LONGSHORE_HOST: "192.168.1.5" } })).toEqual([
      expect.stringMatching(/LONGSHORE_INSECURE=1/),
    ]);
    const env = { LONGSHORE_HOST: "192.168.1.5", LONGSHORE_INSECURE: "1" };
    expect(load({ env }).config.host).toBe("192.168.1.5");
  });

  test.each(["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]", "app.localhost"])(
    "%s is loopback and needs no more",
    (host) => {
      expect(() => load({ flags: { host } })).not.toThrow();
    },
  );

  test.each(["0.0.0.0", "::"])("with the wildcard host %s the public URL is demanded", (host) => {
    const env = { LONGSHORE_HOST: host, LONGSHORE_INSECURE: "1" };
    expect(faultsOf({ env })).toEqual([expect.stringMatching(/LONGSHORE_PUBLIC_URL/)]);
    expect(load({ env: { ...env, LONGSHORE_PUBLIC_URL: "https://a.example" } }).config.host).toBe(host);
  });

  test("a chunk may not be larger than the file it belongs to", () => {
    expect(faultsOf({ flags: { inlineFileBytes: "1KiB" } })).toEqual([
      "LONGSHORE_INLINE_CHUNK_BYTES: a chunk (262144 bytes) may not be larger than the file (--inline-file-bytes, 1024 bytes).",
    ]);
  });

  test("an unknown variable is a warning that names the nearest one, and nothing stops", () => {
    const { warnings } = load({ env: { LONGSHORE_PROT: "1", LONGSHORE_BANANAS: "1", OTHER: "1" } });
    expect(warnings).toEqual([
      "LONGSHORE_BANANAS is no setting and has no effect.",
      "LONGSHORE_PROT is no setting and has no effect; did you mean LONGSHORE_PORT?",
    ]);
  });

  test("the number of threads that the operator has set stays", () => {
    const before = process.env.UV_THREADPOOL_SIZE;
    try {
      process.env.UV_THREADPOOL_SIZE = "5";
      widenThreadPool(16);
      expect(process.env.UV_THREADPOOL_SIZE).toBe("5");
    } finally {
      if (before === undefined) delete process.env.UV_THREADPOOL_SIZE;
      else process.env.UV_THREADPOOL_SIZE = before;
    }
  });
});

describe("the nearest name", () => {
  test.each([
    ["srve", "serve"],
    ["SWEEP", "sweep"],
    ["swep", "sweep"],
    ["completely-other", null],
  ])("of %s is %s", (wrong, right) => {
    expect(nearestName(wrong, ["serve", "sweep"])).toBe(right);
  });
});
