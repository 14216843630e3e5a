import { expect, it } from 'vitest';
import { decodeProcess, encodeProcess, MAX_RECORD_BYTES } from '#lib/engine/codec/process-codec.js';
import { worksOn, type PoolRecord, type ProcessRecord } from '#lib/contract/process-verbs.js';

const job = (id: string) => ({ queue: 'q', id, name: 'n', attempt: 1, since: 5 });
const pool = (more: Partial<PoolRecord> = {}): PoolRecord => ({
  queues: ['q'],
  paused: [],
  quiet: [],
  concurrency: 3,
  workers: ['w.1'],
  running: 1,
  jobs: [job('a')],
  ...more,
});
const record = (pools: readonly PoolRecord[]): ProcessRecord => ({
  id: 'p',
  host: 'h',
  pid: 1,
  versions: { godwit: '1.0.0', node: '20.0.0', server: null },
  startedAt: 7,
  role: 'worker',
  state: 'paused',
  pools,
  morePools: 0,
  obeyed: '',
});
const sizeOf = (text: string) => Buffer.byteLength(text);

it('reads back what it wrote', () => {
  const whole = record([pool(), pool({ queues: ['a', 'b'], paused: ['b'], quiet: ['b'], jobs: [] })]);
  expect(decodeProcess(encodeProcess(whole))).toEqual(whole);
});

it('leaves out jobs of every pool, those that began last, until the rest fits', () => {
  const jobs = Array.from({ length: 50 }, (_, i) => job(String(i).padStart(255, '\u{1F426}')));
  const text = encodeProcess(record([pool({ running: 50, jobs }), pool({ running: 50, jobs }), pool()]));
  expect(sizeOf(text)).toBeLessThanOrEqual(MAX_RECORD_BYTES);
  expect(sizeOf(text)).toBeGreaterThan(MAX_RECORD_BYTES / 4);
  const { pools, morePools } = decodeProcess(text)!;
  expect(pools.map(({ running }) => running)).toEqual([50, 50, 1]);
  expect(pools[0]!.jobs).toEqual(jobs.slice(0, pools[0]!.jobs.length));
  expect(pools[0]!.jobs.length).toBeGreaterThan(5);
  expect(pools[2]!.jobs).toHaveLength(1);
  expect(morePools).toBe(0);
});

it('leaves out pools if there are too many, and counts them', () => {
  const pools = Array.from({ length: 4_096 }, (_, i) => pool({ queues: [`${i}`.padEnd(128, 'x')] }));
  const text = encodeProcess(record(pools));
  expect(sizeOf(text)).toBeLessThanOrEqual(MAX_RECORD_BYTES);
  const read = decodeProcess(text)!;
  expect(read.pools.length).toBeGreaterThan(100);
  expect(read.pools.length + read.morePools).toBe(4_096);
  expect(read.pools[0]).toEqual({ ...pools[0], jobs: [] });
});

it('names the queues of pools that are left out, if they fit', () => {
  const name = (i: number) => `a-queue-with-a-name-${i}`;
  const pools = Array.from({ length: 700 }, (_, i) => pool({ queues: [name(i)] }));
  const text = encodeProcess(record(pools));
  expect(sizeOf(text)).toBeLessThanOrEqual(MAX_RECORD_BYTES);
  const read = decodeProcess(text)!;
  expect(read.morePools).toBe(read.moreQueues!.length);
  expect(read.pools.length).toBeGreaterThan(100);
  expect(pools.filter(({ queues }) => !worksOn(read, queues[0]!))).toEqual([]);
  expect(worksOn(read, 'another')).toBe(false);
});

it('may work on any queue if their names do not fit, or an older version left pools out', () => {
  const pools = Array.from({ length: 4_096 }, (_, i) => pool({ queues: [`${i}`.padEnd(128, 'x')] }));
  const read = decodeProcess(encodeProcess(record(pools)))!;
  expect(read.moreQueues).toBeUndefined();
  expect([worksOn(read, 'another'), worksOn(record([pool()]), 'another')]).toEqual([true, false]);
});

it.each([
  ['another text', 'hello'],
  ['a number', '5'],
  ['an empty object', '{}'],
  ['a list', '[]'],
  ['a state that is no text', JSON.stringify({ ...record([]), state: 1 })],
  ['pools that are no list', JSON.stringify({ ...record([]), pools: {} })],
  ['a pool that is none', JSON.stringify({ ...record([]), pools: [null] })],
  ['jobs without since', JSON.stringify(record([pool({ jobs: [{ ...job('a'), since: undefined! }] })]))],
  ['further queues that are no list', JSON.stringify({ ...record([]), moreQueues: 'a' })],
  ['a pid below zero', JSON.stringify({ ...record([]), pid: -1 })],
  ['versions that are none', JSON.stringify({ ...record([]), versions: null })],
  ['fields of a prototype', '{"__proto__":{"id":"p","host":"h"}}'],
])('reads no record from %s', (_, text) => {
  expect(decodeProcess(text)).toBeNull();
});

it('shows values of a newer version that this one does not know, and ignores further fields', () => {
  const newer = { ...record([pool()]), state: 'resting', role: 'relay' };
  expect(
    decodeProcess(JSON.stringify({ ...newer, region: 'eu', pools: [{ ...pool(), limits: 1 }] })),
  ).toEqual(newer);
});
