import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { CURRENT, unpack, VersionProcess } from './process.js';

/** The versions that the working tree must run beside, packed by `tools/pack-version.mjs`. */
const PACKED = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.tgz'));
const NAMES = ['plain', 'tick', 'flaky', 'snooze', 'endless'];
/** Jobs of each kind that each process adds. */
const JOBS = Number(process.env['GODWIT_VERSION_JOBS'] ?? 10);
const PATIENT = { timeout: 60_000 };

const redis = useRedis({ leaves: ['seen'] });

it('has a version to run with', () => expect(PACKED).toHaveLength(1));

describe.each(PACKED)('together with %s', (tarball) => {
  let old: ReturnType<typeof unpack>;
  beforeAll(() => void (old = unpack(tarball)));
  afterAll(() => old.remove());

  const startOld = () => VersionProcess.start(old.entry, NAMES, redis);
  const startNew = (...more: string[]) => VersionProcess.start(CURRENT, [...NAMES, ...more], redis);
  /** Ids that no other call makes. */
  const idsOf = (prefix: string, count = JOBS) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
  const addAll = async (by: VersionProcess, name: string, ids: readonly string[], options = {}) => {
    await Promise.all(ids.map((id) => by.ask('queue', 'add', name, { of: id }, { id, ...options })));
    return ids;
  };
  const completed = (by: VersionProcess, count: number) =>
    until(async () => (await by.ask('queue', 'counts')).completed === count, PATIENT);
  /** Nothing waits, runs or is dead, each job has run once, and every job is in exactly one place. */
  async function expectWell(by: VersionProcess, runners: readonly VersionProcess[], ids: readonly string[]) {
    const counts = { waiting: 0, delayed: 0, active: 0, dead: 0 };
    await until(async () => (await by.ask('queue', 'counts')).active === 0, PATIENT);
    expect(await by.ask('queue', 'counts')).toMatchObject(counts);
    const ran = runners.flatMap((runner) => runner.ran);
    expect(ids.filter((id) => ran.filter((one) => one === id).length !== 1)).toEqual([]);
    expect((await by.ask('queue', 'audit')).violations).toEqual([]);
  }

  it('both add and run jobs: retries, snoozes, delays, priorities, custom ids and events', async () => {
    const both = await Promise.all([startOld(), startNew()]);
    const ids: string[] = [];
    for (const [who, by] of both.entries()) {
      ids.push(...(await addAll(by, 'plain', idsOf(`plain ${who}`))));
      ids.push(...(await addAll(by, 'flaky', idsOf(`flaky ${who}`))));
      ids.push(...(await addAll(by, 'snooze', idsOf(`snooze ${who}`), { priority: 5 })));
      ids.push(...(await addAll(by, 'plain', idsOf(`delayed ${who}`), { delay: 300, priority: 2 })));
      const bulk = idsOf(`bulk ${who}`).map((id) => ({ name: 'plain', data: 1, options: { id } }));
      await by.ask('queue', 'addBulk', bulk);
      ids.push(...bulk.map(({ options }) => options.id));
    }
    // Each process adds what the other one handles: one job each.
    await addAll(both[0], 'plain', idsOf('plain 1'));
    await addAll(both[1], 'plain', idsOf('plain 0'), { idHeldBy: ['completed'] });
    await completed(both[1], ids.length);
    // Each gets some of the next jobs, however fast the other is.
    const more: string[] = [];
    await until(async () => {
      const [next] = await addAll(both[more.length % 2]!, 'plain', idsOf(`more ${more.length}`, 1));
      more.push(next!);
      return both.every(({ ran }) => ran.length > 0);
    }, PATIENT);
    await completed(both[0], ids.length + more.length);
    for (const by of both) {
      await expectWell(by, both, [...ids, ...more]);
      await until(
        () => by.events.filter((event) => event.startsWith('completed')).length === ids.length + more.length,
        PATIENT,
      );
      await until(async () => (await by.ask('inspector', 'workers')).length === 2, PATIENT);
    }
  });

  it('each shows the log that the other has written', async () => {
    const both = await Promise.all([startOld(), startNew()]);
    const textOf = (line: string | { text: string }) => (typeof line === 'string' ? line : line.text);
    const ids = await addAll(both[0], 'flaky', idsOf('logged'));
    await completed(both[0], ids.length);
    for (const by of both)
      for (const id of ids) {
        const { logs } = await by.ask('queue', 'get', id);
        expect(logs).toHaveLength(2);
        // The version before shows the attempt that this one stores in front of a line.
        const texts = by === both[1] ? ['tries'] : ['tries', '#1 \u001ftries', '#2 \u001ftries'];
        for (const line of logs) expect(texts).toContain(textOf(line));
      }
    expect((await both[1].ask('queue', 'audit')).violations).toEqual([]);
  });

  it('each cancels running jobs of the other, and retries its dead jobs', async () => {
    const both = await Promise.all([startOld(), startNew()]);
    for (const [who, by] of both.entries()) {
      const other = both[1 - who]!;
      const runs = await addAll(by, 'endless', idsOf(`runs ${who}`, 2));
      await until(() => runs.every((id) => both.some(({ begun }) => begun.includes(id))), PATIENT);
      const waits = await addAll(by, 'plain', idsOf(`waits ${who}`, 2), { delay: '1h' });
      for (const id of [...runs, ...waits])
        expect(await other.ask('queue', 'cancel', id, 'no longer')).toMatch(/cancelled|signalled/);
      for (const id of [...runs, ...waits])
        await until(() => both.every(({ events }) => events.includes(`cancelled ${id}`)), PATIENT);

      const died = await addAll(by, 'flaky', idsOf(`died ${who}`, 5), { attempts: 1, priority: 3 });
      await until(async () => (await other.ask('queue', 'counts')).dead === 5, PATIENT);
      expect((await other.ask('dead', 'list')).jobs.map(({ id }: { id: string }) => id).toSorted()).toEqual(
        died,
      );
      // The version before answers with the ids.
      const retried = await other.ask('dead', 'retry', { reason: 'retries-exhausted' });
      expect(Array.isArray(retried) ? retried.length : retried).toBe(5);
      await completed(by, 5 * (who + 1));
    }
    await expectWell(both[0], both, [...idsOf('died 0', 5), ...idsOf('died 1', 5)]);
  });

  it('each adds schedules, and pauses, resumes and removes those of the other', async () => {
    const both = await Promise.all([startOld(), startNew()]);
    for (const [who, by] of both.entries()) {
      const other = both[1 - who]!;
      await by.ask(
        'schedules',
        'upsert',
        `s${who}`,
        { every: '1s' },
        { name: 'tick', options: { priority: 1 } },
      );
      await other.ask('schedules', 'pause', `s${who}`);
      expect(await by.ask('schedules', 'get', `s${who}`)).toMatchObject({ paused: true });
      await other.ask('schedules', 'resume', `s${who}`);
    }
    await until(async () => (await both[0].ask('queue', 'counts')).completed >= 5, PATIENT);
    for (const [who, by] of both.entries()) {
      const one = await by.ask('schedules', 'get', `s${1 - who}`);
      expect(one).toMatchObject({ paused: false, ended: false, rule: { every: '1s' } });
      expect(one.fired).toBeGreaterThan(0);
      await by.ask('schedules', 'remove', `s${1 - who}`);
    }
    await until(async () => (await both[0].ask('queue', 'counts')).waiting === 0, PATIENT);
    await expectWell(both[1], both, []);
    const ran = both.flatMap((by) => by.ran);
    expect(new Set(ran).size).toBe(ran.length);
  });

  it('an upgrade and a downgrade lose nothing: each runs the jobs that the other left', async () => {
    const before = await startOld();
    await before.ask('queue', 'pause');
    const left = [
      ...(await addAll(before, 'plain', idsOf('left'))),
      ...(await addAll(before, 'flaky', idsOf('left delayed'), { delay: 500, priority: 4 })),
    ];
    await before.stop();
    const upgraded = await startNew();
    await upgraded.ask('queue', 'resume');
    await completed(upgraded, left.length);
    await upgraded.ask('schedules', 'upsert', 's', { every: '1s' }, { name: 'tick' });
    const downgraded = await startOld();
    const next = [
      ...(await addAll(upgraded, 'snooze', idsOf('next'))),
      ...(await addAll(upgraded, 'plain', idsOf('next delayed'), { delay: 500 })),
    ];
    await upgraded.stop();
    await until(() => next.every((id) => [...upgraded.ran, ...downgraded.ran].includes(id)), PATIENT);
    await until(() => downgraded.ran.some((id) => id.startsWith('s@')), PATIENT);
    await downgraded.ask('schedules', 'remove', 's');
    await until(async () => (await downgraded.ask('queue', 'counts')).waiting === 0, PATIENT);
    await expectWell(downgraded, [before, upgraded, downgraded], [...left, ...next]);
  });

  it('40 jobs of a new name, added in the middle of a rolling deploy, all run', async () => {
    const before = await startOld();
    const first = await startNew('fresh');
    const ids = await addAll(first, 'fresh', idsOf('fresh', 40));
    const second = await startNew('fresh');
    await before.stop();
    await completed(second, 40);
    await expectWell(second, [first, second], ids);
  });
});
