import { afterEach, beforeEach, expect } from 'vitest';

const events = ['unhandledRejection', 'uncaughtException'] as const;

/** Call it at the top of a spec: none of its tests may leave a rejection unheard, throw into the air, or change all objects. */
export function expectNothingUnhandled(): void {
  let unhandled: unknown[] = [];
  const keep = (error: unknown) => void unhandled.push(error);
  const look = () => {
    for (const event of events) process.off(event, keep);
    expect(unhandled).toEqual([]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  };
  beforeEach(() => {
    unhandled = [];
    for (const event of events) process.on(event, keep);
  });
  afterEach(look);
}
