import { expect, it } from 'vitest';
import { readRedirection, slotOf, SlotMap } from '#lib/engine/cluster/slot-map.js';

const asked = { host: 'asked', port: 1 };

it('knows the master of every slot, and every node', () => {
  const map = new SlotMap(
    [
      [0, 99, ['a', 1, 'id'], ['b', 2, 'id']],
      [200, 299, ['c', 3, 'id']],
    ],
    asked,
  );
  expect([0, 99, 100, 200].map((slot) => map.owner(slot)?.host)).toEqual(['a', 'a', undefined, 'c']);
  expect(map.masters().map(({ host }) => host)).toEqual(['a', 'c']);
  expect(map.nodes().map(({ host }) => host)).toEqual(['a', 'b', 'c']);
  map.assign(99, { host: 'c', port: 3 });
  expect(map.masters().length).toBe(2);
  map.assign(99, { host: 'd', port: 4 });
  expect(map.masters().map(({ host }) => host)).toEqual(['a', 'd', 'c']);
});

it('treats a node without a name as the one that was asked, and uses the reachable addresses of others', () => {
  const reach = () => ({ host: 'reached', port: 9 });
  const map = new SlotMap([[0, 1, [null, 7, 'id'], ['b', 2, 'id']]], asked, reach);
  expect(map.nodes()).toEqual([
    { host: 'asked', port: 7 },
    { host: 'reached', port: 9 },
  ]);
});

it.each([
  ['MOVED 3999 10.0.0.1:6381', { kind: 'MOVED', slot: 3999, to: { host: '10.0.0.1', port: 6381 } }],
  ['ASK 1 2001:db8::1:6381', { kind: 'ASK', slot: 1, to: { host: '2001:db8::1', port: 6381 } }],
  ['MOVED 1 :6381', { kind: 'MOVED', slot: 1, to: { host: 'asked', port: 6381 } }],
  ['TRYAGAIN Multiple keys request during rehashing of slot', null],
  ['MOVED __proto__ a:1', null],
])('reads %s', (text, expected) => {
  expect(readRedirection(text, asked)).toEqual(expected);
});

it('finds the slot by the first key of a command', () => {
  const slot = slotOf('get', ['{p:q}:x']);
  expect(slotOf('evalsha', ['sha', 2, '{p:q}:a', '{p:q}:b', 'x'])).toBe(slot);
  expect(slotOf('exists', ['{p:q}:b'])).toBe(slot);
  expect(slotOf('ping', [])).toBe(null);
  expect(slotOf('evalsha', ['sha', 0, 'x'])).toBe(null);
});
