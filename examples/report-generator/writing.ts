/** Stands in for the real work: a model, a search, a database. */
import { setTimeout as sleep } from "node:timers/promises";

const sectionMs = 400;

export function introduction(topic: string): string {
  return `# Report on ${topic}\n`;
}

export async function writeSection(
  topic: string,
  number: number,
  tone: string,
  signal: AbortSignal,
): Promise<string> {
  // stdout belongs to the protocol.
  console.error(`Writing section ${number} on ${topic}`);
  await sleep(sectionMs, undefined, { signal });
  return `## Section ${number}\n\nWhat there is to say about ${topic}, in a ${tone} tone.\n`;
}
