import { describe, expect, test } from "vitest";
import { TransferError } from "../../src/errors.ts";
import { parseUploadMetadata, readUploadMetadata } from "../../src/tus/upload-metadata.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof TransferError) return error.code;
    throw error;
  }
  return "accepted";
}

describe("Upload-Metadata", () => {
  test.each([
    ["an empty field", "", []],
    ["a field of spaces", "  \t ", []],
    ["a key without a value", "is_confidential", [["is_confidential", ""]]],
    ["a key with a space and no value", "is_confidential ", [["is_confidential", ""]]],
    [
      "spaces around commas",
      "a YQ== , b Yg==",
      [
        ["a", "YQ=="],
        ["b", "Yg=="],
      ],
    ],
    ["several spaces between key and value", "a   YQ==", [["a", "YQ=="]]],
    [
      "keys that objects have too",
      "constructor YQ==,__proto__ Yg==,toString",
      [
        ["constructor", "YQ=="],
        ["__proto__", "Yg=="],
        ["toString", ""],
      ],
    ],
    ["keys of other bytes than ASCII", "na\u00efve YQ==", [["na\u00efve", "YQ=="]]],
    ["keys of punctuation", "a=b;c YQ==", [["a=b;c", "YQ=="]]],
  ])("takes %s", (_name, text, pairs) => {
    expect([...parseUploadMetadata(text)]).toEqual(pairs);
  });

  test.each([
    ["a trailing comma", "a YQ==,"],
    ["a leading comma", ",a YQ=="],
    ["nothing but a comma", ","],
    ["the same key twice", "a YQ==,a Yg=="],
    ["two values", "a YQ== Yg=="],
    ["a value that is not base64", "a !!!!"],
    ["a value without padding", "a YQ"],
    ["a value of the URL alphabet", "a _-_-"],
    ["a control character in a key", "a\u0001b YQ=="],
  ])("refuses %s", (_name, text) => {
    expect(codeOf(() => parseUploadMetadata(text))).toBe("invalid_param");
  });

  test("of more than 8 KiB is refused as too large a header", () => {
    expect(codeOf(() => parseUploadMetadata("a".repeat(8193)))).toBe("headers_too_large");
    expect(codeOf(() => parseUploadMetadata("a".repeat(8192)))).toBe("accepted");
  });

  test("gives name, type and digest, the tus names before the short ones", () => {
    const digest = "AB".repeat(32);
    expect(
      readUploadMetadata(
        `name ${base64("short")},filename ${base64("größe ✓.txt")},type ${base64("text/plain")},sha256 ${base64(digest)}`,
      ),
    ).toEqual({ filename: "größe ✓.txt", contentType: "text/plain", sha256: digest.toLowerCase() });
    expect(readUploadMetadata(`name ${base64("short")},filename`).filename).toBe("short");
    expect(readUploadMetadata("filename").filename).toBeNull();
  });

  test("keeps a type with parameters and drops what is no media type", () => {
    const typeOf = (text: string) => readUploadMetadata(`filetype ${base64(text)}`).contentType;
    expect(typeOf('text/html; charset="utf-8"; x=y')).toBe('text/html; charset="utf-8"; x=y');
    for (const text of [
      "invoice",
      "text/",
      "text/plain\r\nX: y",
      "text/plain; é=1",
      `a/${"b".repeat(300)}`,
    ]) {
      expect(typeOf(text)).toBeNull();
    }
  });

  test("replaces control characters in names and refuses names of more than 1,024 bytes", () => {
    expect(readUploadMetadata(`filename ${base64("a\u0000b\nc/../d\u001b[31m")}`).filename).toBe(
      "a_b_c/../d_[31m",
    );
    expect(codeOf(() => readUploadMetadata(`filename ${base64("é".repeat(512))}`))).toBe("accepted");
    expect(codeOf(() => readUploadMetadata(`filename ${base64("é".repeat(513))}`))).toBe("invalid_param");
  });

  test("with a name that is no UTF-8 is taken", () => {
    expect(
      readUploadMetadata(`filename ${Buffer.from([0x61, 0xff, 0xfe]).toString("base64")}`).filename,
    ).toBe("a\ufffd\ufffd");
  });

  test.each(["abc", "g".repeat(64), "a".repeat(63), "a".repeat(65), `${"a".repeat(64)}\n`])(
    "refuses the digest %j",
    (digest) => {
      expect(codeOf(() => readUploadMetadata(`sha256 ${base64(digest)}`))).toBe("invalid_param");
    },
  );
});
