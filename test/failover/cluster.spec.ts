import { expect, it } from 'vitest';
import { nodeKilled, slotMoved } from './cluster-faults.js';

it('goes on after the death of a master, and loses nothing that its replica has confirmed', async () => {
  const { resumedMs, local, replicated, elsewhere, finish } = await nodeKilled();
  // The promise is five seconds; a busy machine takes longer.
  expect(resumedMs).toBeLessThan(20_000);
  expect(finish).toMatchObject({ isDrained: true, unhandled: [], violations: [] });
  for (const account of [local, replicated, elsewhere]) {
    expect(account).toMatchObject({ phantom: [], undecided: 0 });
  }
  expect([...replicated.lost, ...elsewhere.lost]).toEqual([]);
}, 120_000);

it('loses and doubles nothing while a slot goes to another master, also half-way', async () => {
  const { local, replicated, elsewhere, finish } = await slotMoved(2_000);
  expect(finish).toMatchObject({ isDrained: true, unhandled: [], violations: [] });
  for (const account of [local, replicated, elsewhere]) {
    expect(account).toMatchObject({ lost: [], phantom: [], settledTwice: [], undecided: 0 });
  }
  expect(finish.complaints.filter((text) => text.includes('CROSSSLOT'))).toEqual([]);
}, 120_000);
