import { expect, it } from 'vitest';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, job, QUEUE, useQueue } from './support.js';

const q = useQueue();

const RATE = { max: 100, per: 1_000, window: 'sliding', burst: 100 } as const;
const member = (id: string, group: string) => job(id, { group, body: encodeBody('work', 1, { group }, '') });

const STRAYS = [
  ['ready', 'a member', (text: string) => q.admin.zadd(q.key('ready'), 0.1, text)],
  ['ready', 'a new member', (text: string) => q.admin.zadd(q.key('ready'), 0, text)],
  ['resting', 'a member', (text: string) => q.admin.zadd(q.key('resting'), 0.1, text)],
  ['lines', 'a field', (text: string) => q.admin.hset(q.key('lines'), text, text)],
  ['lines', 'the line of a group', (text: string) => q.admin.hset(q.key('lines'), 'g:g', text)],
  ['lineStates', 'a field', (text: string) => q.admin.hset(q.key('lineStates'), text, text)],
  ['lineStates', 'the state of a line', (text: string) => q.admin.hset(q.key('lineStates'), '0000001', text)],
  ['limitStates', 'the state of a limit', (text: string) => q.admin.hset(q.key('limitStates'), 'g:g', text)],
  ['limits', 'a limit', (text: string) => q.admin.hset(q.key('limits'), 'g:g', text, text, text)],
  ['slots', 'a member', (text: string) => q.admin.zadd(q.key('slots'), 3.7, text, '+inf', 'inf')],
  ['grouped', 'a member', (text: string) => q.admin.zadd(q.key('grouped'), 2 ** 32 + 1, text, -2, 'low')],
] as const;

const CASES = STRAYS.flatMap(([key, what, put]) =>
  ['stray', '', 'a\nb'].flatMap((text) =>
    (['turns', 'in-flight'] as const).map((fairness) => ({ key, what, put, text, fairness })),
  ),
);

it.each(CASES)(
  'groups by $fairness go on if another program has put $text into $key as $what',
  async ({ put, text, fairness }) => {
    const rule = { concurrency: 2, maxSize: 50, rate: RATE, ...(fairness === 'in-flight' && { fairness }) };
    await q.engine.limits.set(QUEUE, 'g', 'code', rule);
    await q.add(member('a', 'g'), member('b', 'g'), member('c', 'h'), job('d'));
    await put(text);
    await q.add(member('e', 'g'), member('f', 'new'), job('x'));
    const ran: string[] = [];
    for (let claims = 0; claims < 6; claims += 1) {
      const { claimed } = await q.exchanged({ want: 9 });
      await q.exchange({ want: 0, settled: claimed.map(({ id }) => completed(id)) });
      ran.push(...claimed.map(({ id }) => id));
    }
    expect(ran).toEqual(expect.arrayContaining(['a', 'b', 'c', 'd', 'e', 'f', 'x']));
    expect((await q.engine.limits.overview(QUEUE)).limits).not.toEqual([]);
    expect(await q.engine.limits.group(QUEUE, 'g')).toMatchObject({ field: 'g:g' });
    await q.engine.limits.charge(QUEUE, [{ field: 'g:g', holdMs: 0, count: 1 }]);
  },
);
