import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { Contender } from '../../bench/src/contender.js';
import { CONTROL_NAME } from '../../bench/src/measure/connections.js';
import type { Lab } from '../../bench/src/scenario.js';
import { useServer } from '../support/server.js';

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

/**
 * The parts that a measurement needs. Measurements empty their server, so the spec has one of its own. The client with which they look at it
 * is connected before the first test; otherwise that test would seem to have opened the connection.
 */
export function useLab(): (contender: Contender, jobs: number) => Lab {
  const server = useServer();
  let control: Redis;
  beforeAll(async () => {
    control = new Redis(server.url, { connectionName: CONTROL_NAME });
    await control.ping();
  });
  beforeEach(() => control.flushall());
  afterAll(() => control.disconnect());
  return (contender, jobs) => ({ contender, url: server.url, jobs, control, progress: () => {} });
}
