/** Waits until something holds; fails after 20 s. No test waits for time itself to pass. */
export async function waitUntil(holds: () => boolean | Promise<boolean>, withinMs = 20_000): Promise<void> {
  const until = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`did not come true within ${withinMs} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
