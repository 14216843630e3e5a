import { it } from 'vitest';
import { nodeKilled, slotMoved } from './cluster-faults.js';
const show = (r: any) => {
  const short = (a: any) => ({ ...a, lost: a.lost.length, settledTwice: a.settledTwice.length });
  console.log(
    JSON.stringify(
      { ...r, local: short(r.local), replicated: short(r.replicated), elsewhere: short(r.elsewhere) },
      null,
      1,
    ),
  );
};
it('kill', async () => show(await nodeKilled()), 120_000);
it('move', async () => show(await slotMoved(10_000)), 120_000);
