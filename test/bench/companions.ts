import { afterAll, beforeAll } from 'vitest';

/** Processes of a measurement that are started from a spec run from sources. */
export function useCompanions(): void {
  const before = process.env.NODE_OPTIONS;
  beforeAll(() => {
    const hooks = new URL('../../tools/typescript.mjs', import.meta.url).href;
    process.env.NODE_OPTIONS = `${before ?? ''} --import=${hooks}`;
  });
  afterAll(() => {
    if (before === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = before;
  });
}
