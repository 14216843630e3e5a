import { describe, expect, it } from 'vitest';
import type { WorkerInfo } from '#lib/inspect/queue-inspector.js';
import { pausedPlace } from '#lib/inspect/serving.js';

const process = (queues: string[], paused: string[], state: WorkerInfo['state'] = 'running') =>
  ({ state, pools: [{ queues, paused }] }) as unknown as WorkerInfo;

describe('the processes that have paused a queue', () => {
  it.each([
    ['no process', [], null],
    ['a process of another queue', [process(['b'], ['b'])], null],
    ['one that has paused it', [process(['a', 'b'], ['a'])], 'the only process that works on it'],
    ['one of two', [process(['a'], ['a']), process(['a'], [])], null],
    ['both', [process(['a'], ['a']), process(['a'], ['a'])], 'all 2 processes that work on it'],
    [
      'the one that stays',
      [process(['a'], ['a']), process(['a'], [], 'draining')],
      'the only process that works on it',
    ],
    [
      'one whose record leaves out the queue',
      [process(['a'], ['a']), { ...process(['b'], []), morePools: 1, moreQueues: ['a'] }],
      null,
    ],
    [
      'one that has paused every queue',
      [{ ...process(['b'], ['b'], 'paused'), morePools: 1 }],
      'the only process that works on it',
    ],
    ['only a process that stops', [process(['a'], [], 'draining')], null],
  ])('%s', (_, processes, place) => {
    expect(pausedPlace('a', processes)).toBe(place);
  });
});
