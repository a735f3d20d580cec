import { describe, expect, it } from "vitest";
import { canonicalJson, jsonText, NotJson, parsedJson } from "../../src/tasks/json-value.ts";

const values: [string, () => unknown, RegExp][] = [
  ["undefined in an object", () => ({ a: { b: undefined } }), /a\.b is undefined/],
  ["a hole in a list", () => Object.assign([1], { 2: 3 }), /\[1\] is undefined/],
  ["a function", () => ({ f: () => 1 }), /f is a function/],
  ["a symbol", () => Symbol("s"), /is a symbol/],
  ["NaN", () => ({ n: [Number.NaN] }), /n\[0\] is NaN/],
  ["Infinity", () => Number.POSITIVE_INFINITY, /is Infinity/],
  ["a BigInt", () => ({ big: 1n }), /big is a bigint/],
  ["a Date", () => ({ at: new Date() }), /at is a Date/],
  ["a Map", () => new Map(), /is a Map/],
  ["an instance of a class", () => new (class Point {})(), /is a Point/],
  ["bytes", () => Buffer.from("x"), /is a Buffer/],
  ["a value with toJSON", () => ({ toJSON: "x" }), /toJSON/],
  [
    "a value that contains itself",
    () => {
      const round: Record<string, unknown> = {};
      round.self = { round };
      return round;
    },
    /contains itself/,
  ],
  [
    "a value of endless depth",
    () => Array.from({ length: 300 }).reduce((inner) => [inner], 0),
    /deeper than/,
  ],
  ["more than 1 MiB", () => "x".repeat(1 << 20), /1048578 bytes/],
];

describe("a value on its way into a record", () => {
  it.each(values)("that is %s is refused, and the message says where it is", (_what, value, message) => {
    const text = () => jsonText(value(), "The value");
    expect(text).toThrow(NotJson);
    expect(text).toThrow(message);
  });

  it("that is a plain object of any kind comes back as it was: without prototype, shared twice, with odd keys", () => {
    const shared = { n: 1 };
    const value = {
      ...Object.assign(Object.create(null), { a: shared }),
      b: shared,
      "": "",
      "a.b": -0.5,
      ["__proto__"]: 1,
    };
    expect(parsedJson(jsonText(value, "It"))).toEqual(value);
    expect(parsedJson(jsonText(Object.create(null), "It"))).toEqual({});
  });

  it("that is nothing is recorded as nothing", () => {
    expect(jsonText(undefined, "It")).toBeNull();
    expect(parsedJson(null)).toBeUndefined();
    expect(parsedJson(jsonText(null, "It"))).toBeNull();
  });

  it("of exactly 1 MiB passes", () => {
    expect(jsonText("x".repeat((1 << 20) - 2), "It")).toHaveLength(1 << 20);
  });

  it("has one canonical text whatever the order of its keys", () => {
    const one = canonicalJson({ b: [{ y: 1, x: 2 }], a: null });
    expect(one).toBe(canonicalJson({ a: null, b: [{ x: 2, y: 1 }] }));
    expect(one).not.toBe(canonicalJson({ a: null, b: [{ x: 2, y: 2 }] }));
  });
});
