import { describe, expect, it } from 'vitest';
import { RULES } from '#lib/job/rules.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('actions (%s)', (kind) => {
  const t = useEngine(kind);
  const record = (actor: string, target: string, queue: string | null = 'q') =>
    t.engine.actions.record({ actor, action: 'job.retry', queue, target, count: 1, result: 'ok' });
  const list = async (
    call: { before?: string | null; limit?: number; queue?: string; actor?: string } = {},
  ) => {
    const { actions, next } = await t.engine.actions.list({ before: null, limit: 10, ...call });
    return { targets: actions.map(({ target }) => target), next };
  };

  it('are listed with what was recorded and when, the newest first, by every engine of the store', async () => {
    expect(await list()).toEqual({ targets: [], next: null });
    await record('ada', 'one');
    const refused = { actor: 'bob', action: 'process.quiet', queue: null, target: '', count: null };
    const result = 'GODWIT_PROCESS_NOT_FOUND';
    await t.engine.actions.record({ ...refused, result });
    const { actions } = await t.engineWith().actions.list({ before: null, limit: 10 });
    const stored = { id: expect.any(String), at: expect.any(Number) };
    expect(actions).toEqual([
      { ...stored, ...refused, result },
      { ...stored, actor: 'ada', action: 'job.retry', queue: 'q', target: 'one', count: 1, result: 'ok' },
    ]);
    expect(actions[0]!.at).toBeGreaterThanOrEqual(actions[1]!.at);
  });

  it('are listed in pages, each once, also while others come', async () => {
    for (let i = 0; i < 7; i++) await record('ada', String(i));
    const seen: string[] = [];
    let before: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof list>> = await list({ before, limit: 3 });
      seen.push(...page.targets);
      before = page.next;
      await record('bob', 'later');
    } while (before !== null);
    expect(seen).toEqual(['6', '5', '4', '3', '2', '1', '0']);
  });

  it('are listed by actor and by queue, however far back', async () => {
    await record('ada', 'old');
    await record('ada', 'elsewhere', 'other');
    const many = Array.from({ length: 1_200 }, (_, i) => record('bob', String(i)));
    await Promise.all(many);
    expect(await list({ actor: 'ada' })).toEqual({ targets: ['elsewhere', 'old'], next: null });
    expect(await list({ actor: 'ada', queue: 'q' })).toEqual({ targets: ['old'], next: null });
    expect(await list({ queue: 'nobody' })).toEqual({ targets: [], next: null });
    expect((await list({ actor: 'bob', limit: 1_100 })).targets).toHaveLength(1_100);
  });

  it('are kept for about the last 10,000', async () => {
    await record('ada', 'first');
    const many = Array.from({ length: RULES.actionsMax + 200 }, () => record('bob', ''));
    await Promise.all(many);
    expect(await list({ actor: 'ada' })).toEqual({ targets: [], next: null });
  });
});
