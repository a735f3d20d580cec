/** The line of curl, as a shell runs it. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { curlUploadLine } from "../../src/web/curl-upload-line.ts";
import { describeWithProgram } from "../support/needs-program.ts";
import { startTestServer } from "../support/running-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const shell = promisify(execFile);

describeWithProgram("curl", "the line of curl", () => {
  test.each(["plain.bin", "a[1-2].bin", "{a,b}.bin", "brackets ] and } alone"])(
    "sends a file of the name %s",
    async (name) => {
      const server = await startTestServer();
      const file = path.join(await tempDir(), name);
      await writeFile(file, "hello");
      const { stdout } = await shell("bash", ["-c", curlUploadLine(server.publicUrl, `'${file}'`)]);
      expect(JSON.parse(stdout)).toMatchObject({ status: "complete", size: 5 });
    },
  );
});
