/** A server that may open only a few files is asked for more than that. */
import { expect, test } from "vitest";
import {
  answerOrNone,
  type HttpAnswer,
  http,
  offsetOf,
  open,
  patchHeaders,
  tusCreate,
  tusCreated,
  tusHead,
  tusPatch,
} from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { useServer } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const limit = 128;

const running = useServer({ wrapper: ["bash", "-c", `ulimit -n ${limit}; exec "$@"`, "bash"] });

test("out of file descriptors it answers what it means or not at all, and recovers when the others have gone", async () => {
  const stored = new Sample("stored before", 100_000);
  const whole = await tusCreate(running.url, stored.sizeBytes, {}, stored.bytes());
  expect(whole.status).toBe(201);
  const urls: string[] = [];
  for (let count = 0; count < limit; count += 1) urls.push(await tusCreated(running.url, 10));

  // Each takes a socket and, once its byte is there, a file.
  const writers = urls.map((url) => {
    const request = open("PATCH", url, patchHeaders(0, 10), 60_000);
    request.write(Buffer.from("0")).catch(() => {});
    return { url, request, answer: answerOrNone(request.answer) };
  });
  const told: HttpAnswer[] = [];
  for (const { answer } of writers) void answer.then((given) => given !== null && told.push(given));
  await waitUntil(
    async () => (await answerOrNone(http("GET", `${running.url}/healthz`, { withinMs: 500 }))) === null,
  );
  expect(running.server.isRunning()).toBe(true);

  for (const { request } of writers) request.destroy();
  await Promise.all(writers.map(({ answer }) => answer));
  // Whoever was answered was told that it is the storage, with the time to come back.
  for (const { status, headers } of told) {
    expect([503, 507, 423, 408, 400, 413]).toContain(status);
    if (status === 503) expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  }
  await waitUntil(
    async () =>
      (await answerOrNone(http("GET", `${running.url}/healthz`, { withinMs: 1000 })))?.status === 200,
  );
  for (const url of urls.slice(0, 20)) {
    let head = await tusHead(url);
    await waitUntil(async () => {
      head = await tusHead(url);
      return head.status === 200;
    });
    const offset = offsetOf(head);
    expect([0, 1]).toContain(offset);
    const rest = await tusPatch(url, offset, "0123456789".slice(offset));
    expect([rest.status, rest.headers["longshore-status"]]).toEqual([204, "complete"]);
  }
  const head = await tusHead(String(whole.headers.location));
  expect(head.headers["longshore-status"]).toBe("complete");
  expect(running.server.log()).not.toContain('"code":"internal_error"');
});
