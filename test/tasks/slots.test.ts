import { describe, expect, it } from "vitest";
import { Slots } from "../../src/tasks/slots.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("the places of a process", () => {
  it("are taken up to the number there is, and up to the share of each principal", () => {
    const slots = new Slots(3, 2, () => {});
    expect([slots.tryTake("a"), slots.tryTake("a"), slots.tryTake("a")]).toEqual([true, true, false]);
    expect([slots.tryTake("b"), slots.tryTake("c")]).toEqual([true, false]);
    expect(slots.free).toBe(0);
    slots.give("a");
    expect(slots.tryTake("c")).toBe(true);
  });

  it("go first to those that had one before, in the order of their coming back", async () => {
    let freed = 0;
    const slots = new Slots(1, 1, () => {
      freed += 1;
    });
    slots.tryTake("a");
    const order: string[] = [];
    for (const who of ["x", "y"]) void slots.takeAgain(who).then(() => order.push(who));
    slots.give("a");
    await turn();
    expect(order).toEqual(["x"]);
    expect(freed).toBe(0);
    slots.give("x");
    await turn();
    expect(order).toEqual(["x", "y"]);
    slots.give("y");
    expect([slots.free, freed]).toEqual([1, 1]);
    expect(slots.running()).toEqual([]);
  });

  it("that were reserved are nobody else's until it is known whose they are", async () => {
    const slots = new Slots(4, 4, () => {});
    expect(slots.reserve()).toBe(4);
    expect(slots.tryTake("a")).toBe(false);
    let back = false;
    void slots.takeAgain("b").then(() => {
      back = true;
    });
    await turn();
    expect(back).toBe(false);
    slots.assign(4, ["a", "a"]);
    await turn();
    expect(back).toBe(true);
    expect(slots.free).toBe(1);
    expect(slots.running()).toEqual([
      { principal: "a", tasks: 2 },
      { principal: "b", tasks: 1 },
    ]);
  });
});
