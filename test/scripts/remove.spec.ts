import { describe, expect, it } from 'vitest';
import { remove } from '#lib/engine/scripts/admin.js';
import { useServer } from '../support/server.js';
import { job, QUEUE, retried, useQueue, WAITS_OR_ENDED, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes, without } from './unchanged.js';

// Its own server, for a spec that counts commands.
const q = useQueue({ server: useServer() });

const removing = () => q.engine.admin.remove(QUEUE, 'x');

describe('removes a job with everything it left, and no other, when it is', () => {
  it.each(WAITS_OR_ENDED)('%s', async (_, bring) => {
    await bring(q);
    await q.add('other', job('other late', { delayMs: 60_000, priority: 2 }));
    expect(await removing()).toBe('removed');
    expect(await q.engine.admin.get(QUEUE, 'x')).toBeNull();
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({
      waiting: 1,
      delayed: 1,
      completed: 0,
      dead: 0,
      cancelled: 0,
    });
    const left = without(await q.dump(), 'events', `worker:${WORKER}`);
    expect(JSON.stringify(left)).not.toContain('"x"');
    expect((await q.events()).at(-1)).toMatchObject({
      type: 'removed',
      id: 'x',
      name: 'work',
      reason: 'asked',
    });
    expect(await q.add('x')).toEqual([]);
  });
});

it('does not remove an active job, whichever worker holds it', async () => {
  await q.add('a', 'x');
  await q.claim(1, 'w1');
  await q.claim(1, 'w2');
  expect(await changingNothing(q, () => removing())).toBe('active');
});

describe('of many jobs in a long line', () => {
  const all = Array.from({ length: 10_000 }, (_, i) => `job-${i}`);
  const addAll = async () => {
    for (let at = 0; at < all.length; at += 1_000) await q.add(...all.slice(at, at + 1_000));
  };
  /** How often a command ran. */
  const callsOf = async (name: string) => {
    const stats = await q.admin.info('commandstats');
    return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  };

  it('searches the line twice for each hundred that are near to each other', async () => {
    await addAll();
    const chosen = all.slice(7_000, 7_900).filter((_, i) => i % 9 === 4);
    await q.admin.config('RESETSTAT');
    expect(await q.engine.admin.removeAll(QUEUE, chosen)).toEqual(chosen.map(() => 'removed'));
    // The list of suspects is searched for each job.
    expect([await callsOf('lpos'), await callsOf('lrem')]).toEqual([1, 1 + chosen.length]);
    expect(await q.admin.lrange(q.key('wait'), 0, -1)).toEqual(all.filter((id) => !chosen.includes(id)));
  });

  it('finds those that are far from each other, in whatever order they are given', async () => {
    await addAll();
    const chosen = ['job-9999', 'job-1', 'job-5001', 'job-0', 'job-4000', 'job-9998'];
    expect(await q.engine.admin.removeAll(QUEUE, chosen)).toEqual(chosen.map(() => 'removed'));
    expect(await q.admin.lrange(q.key('wait'), 0, -1)).toEqual(all.filter((id) => !chosen.includes(id)));
    expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
  });

  it('removes those in other places with the first call, and is not stopped by one without a place', async () => {
    await q.add('a', 'lost', 'b', job('later', { delayMs: 60_000 }));
    await q.admin.lrem(q.key('wait'), 1, 'lost');
    expect(await q.engine.admin.removeAll(QUEUE, ['lost', 'b', 'later', 'a'])).toEqual(
      Array(4).fill('removed'),
    );
    expect((await q.engine.admin.audit(QUEUE)).checked).toBe(0);
  });

  it('reads few large bodies in one call', async () => {
    const body = `work\n{}\n${JSON.stringify('x'.repeat(700_000))}`;
    for (const id of ['a', 'b', 'c']) await q.add(job(id, { body }));
    await q.admin.config('RESETSTAT');
    expect(await q.engine.admin.removeAll(QUEUE, ['a', 'b', 'c'])).toEqual(Array(3).fill('removed'));
    // Each call writes an event.
    expect(await callsOf('xadd')).toBe(2);
  });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: remove.keys,
    except: ['events'],
    async prepare() {
      await q.hold('x', 'held');
      await q.note('x');
      await q.settle(retried('x', { delayMs: 60_000, priority: 2 }));
      return () => removing();
    },
  });
});
