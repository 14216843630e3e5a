import { describe, expect, it } from 'vitest';
import { useRedis } from '../support/redis.js';
import { shortRun } from './mix/short-run.js';

const redis = useRedis();

describe('a short run of mixed features', () => {
  it('breaks no promise', async () => {
    const verdict = await shortRun({ connection: redis.url, prefix: redis.prefix, seed: 1, ms: 1_500 });
    console.log(verdict);
    expect(verdict.findings).toEqual([]);
    expect(verdict.runs).toBeGreaterThan(100);
  });
});
