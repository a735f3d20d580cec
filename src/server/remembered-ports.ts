/**
 * The ports that earlier processes had for their HTTP side, kept in the data folder: one that takes such a port again answers under the
 * URLs that were handed out before.
 */
import { randomUUID } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";

const filename = "stdio-ports.json";
/** More hosts at once on one folder than anybody has; the oldest are forgotten. */
const maxPorts = 16;

/** The newest last. What cannot be read is as good as nothing: any port will do. */
export async function rememberedPorts(dataDir: string): Promise<readonly number[]> {
  try {
    const stored: unknown = JSON.parse(await readFile(path.join(dataDir, filename), "utf8"));
    const { ports } = (typeof stored === "object" && stored !== null ? stored : {}) as { ports?: unknown };
    return Array.isArray(ports) ? ports.filter(isPort) : [];
  } catch {
    return [];
  }
}

export async function rememberPort(dataDir: string, port: number): Promise<void> {
  const ports = await rememberedPorts(dataDir);
  if (ports.includes(port)) return;
  const file = path.join(dataDir, filename);
  const draft = `${file}.${randomUUID()}`;
  try {
    await writeFile(draft, `${JSON.stringify({ ports: [...ports, port].slice(-maxPorts) })}\n`, {
      mode: 0o600,
    });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1_024 && Number(value) <= 65_535;
}
