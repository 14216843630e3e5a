import { beforeEach, expect, it, vi } from 'vitest';
import type { Log } from '#lib/contract/log.js';
import { Trouble } from '#lib/contract/trouble.js';
import { RedisRefusedError, RedisUnavailableError } from '#lib/errors.js';

const lines: string[] = [];
let now = 0;
const refused = (reply: string) => new RedisRefusedError('exchange', reply, `${reply} no`);
const away = new RedisUnavailableError('exchange', 'no', 'no connection');

function troubleOf(): Trouble {
  const keep = (level: string) => (text: string) => void lines.push(`${level}: ${text.split(':')[0]}`);
  const log = { debug: keep('debug'), log: keep('log'), error: keep('error') } as unknown as Log;
  return new Trouble(log, 'fails', 'works');
}

beforeEach(() => {
  lines.length = 0;
  now = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});

it('logs one line when work begins to fail, and one with the time when it succeeds again', () => {
  const trouble = troubleOf();
  trouble.ended();
  for (let i = 0; i < 60; i++) {
    trouble.failed(refused('MISCONF'));
    now += 1_000;
  }
  expect(lines).toEqual(['error: fails, retrying']);
  trouble.ended();
  trouble.ended();
  expect(lines).toEqual(['error: fails, retrying', 'log: works, after 1 min']);
});

it('logs another kind of error too, with the time since the first one', () => {
  const trouble = troubleOf();
  trouble.failed(away);
  now += 2_000;
  for (const reply of ['LOADING', 'LOADING', 'READONLY', 'LOADING']) trouble.failed(refused(reply));
  trouble.failed(away);
  now += 1_500;
  trouble.ended();
  const fails = 'fails, retrying';
  expect(lines).toEqual([`debug: ${fails}`, `error: ${fails}`, `error: ${fails}`, 'log: works, after 3.5 s']);
});

it('only logs at debug level that Redis was away, which the process logs once', () => {
  const trouble = troubleOf();
  trouble.failed(away);
  now += 500;
  trouble.ended();
  expect(lines).toEqual(['debug: fails, retrying', 'debug: works, after 500 ms']);
});

it('logs work that fails and succeeds in turn at most once in 10 s', () => {
  const trouble = troubleOf();
  for (let i = 0; i < 19; i++) {
    trouble.failed(refused('MISCONF'));
    trouble.ended();
    now += 1_000;
  }
  expect(lines.filter((line) => line.startsWith('error'))).toHaveLength(2);
  expect(lines).toHaveLength(4);
  now += 1_000;
  // A trouble that begins within these 10 s and lasts longer is logged too.
  trouble.failed(refused('MISCONF'));
  now += 10_000;
  trouble.failed(refused('MISCONF'));
  now += 2_000;
  trouble.ended();
  expect(lines.slice(-2)).toEqual(['error: fails, retrying', 'log: works, after 12 s']);
});
