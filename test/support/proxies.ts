/** nginx and Caddy as programs in front of a server: each in a folder of its own, on loopback ports, ended with the file of tests. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { waitUntil } from "./wait-until.ts";

export interface RunningProxy {
  readonly folder: string;
  stop(): Promise<void>;
}

const alive = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

async function started(
  folder: string,
  command: string,
  args: readonly string[],
  isReady: () => Promise<boolean>,
): Promise<RunningProxy> {
  const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn(command, args, { env, cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  alive.add(child);
  const exited = once(child, "exit").finally(() => alive.delete(child));
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-20_000);
  });
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited.catch(() => {});
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await waitUntil(async () => {
      if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}: ${said}`);
      return isReady().catch(() => false);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { folder, stop };
}

export const proxyFolder = (): Promise<string> => mkdtemp(path.join(os.tmpdir(), "longshore-proxy-"));

/** @param sites `server` blocks. */
export async function startNginx(
  folder: string,
  sites: string,
  isReady: () => Promise<boolean>,
): Promise<RunningProxy> {
  const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  for (const name of temp) await mkdir(path.join(folder, name));
  const paths = temp.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ");
  const conf = path.join(folder, "nginx.conf");
  await writeFile(
    conf,
    `daemon off; master_process off; pid ${folder}/pid;\nevents {}\nhttp { access_log off; ${paths}\n${sites}\n}\n`,
  );
  return started(folder, "nginx", ["-p", folder, "-e", `${folder}/error.log`, "-c", conf], isReady);
}

/** @param sites site blocks. Certificates come from an authority of its own, in the folder; nothing of this machine is asked to trust it. */
export async function startCaddy(
  folder: string,
  sites: string,
  isReady: () => Promise<boolean>,
): Promise<RunningProxy> {
  const conf = path.join(folder, "Caddyfile");
  const global = "{\n  admin off\n  skip_install_trust\n  auto_https disable_redirects\n}\n";
  await writeFile(conf, global + sites);
  return started(folder, "caddy", ["run", "--config", conf, "--adapter", "caddyfile"], isReady);
}

/** Certificate of Caddy's own authority, once it has made one. */
export const caddyAuthority = (folder: string): Promise<string> =>
  readFile(path.join(folder, "caddy/pki/authorities/local/root.crt"), "utf8");

/** A certificate that says of itself that it is good. */
export function selfSigned(folder: string, name: string): { readonly cert: string; readonly key: string } {
  const [cert, key] = [path.join(folder, "cert.pem"), path.join(folder, "key.pem")];
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`];
  const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", ...kind, "-keyout", key, "-out", cert, ...subject], { stdio: "pipe" });
  return { cert, key };
}
