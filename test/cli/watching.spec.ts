import { describe, expect, it } from 'vitest';
import { createInspector } from '#lib/subpaths/inspector.js';
import { Printer } from '#lib/subpaths/cli/context.js';
import { standardOutput } from '#lib/subpaths/cli/output.js';
import type { Screen } from '#lib/subpaths/cli/table.js';
import { page, WatchLines } from '#lib/subpaths/cli/watch-commands.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';
import { godwit, godwitOn, runOn } from './support.js';

const redis = useRedis();
const server = useServer({ args: KEEPING });
const own = useRedis({ server });

/** A verb of the command, whose output is a terminal without a size. */
function onTerminal(term: string, verb: string, ...words: string[]) {
  const change = `process.env.TERM='${term}';Object.assign(process.stdout,{isTTY:true,columns:0,rows:0})`;
  const args = [verb, '-u', redis.url, '--prefix', redis.prefix, ...words];
  return godwit(args, undefined, ['--import', `data:text/javascript,${change}`]);
}

const run = (...words: string[]) => runOn(redis, ...words);

describe('tail', () => {
  it('prints the reason and the error of a failed attempt, also if the line is cut', async () => {
    const { queue } = await bootQueue(redis, {
      watch: false,
      handlers: {
        bad: () => {
          throw new TypeError('the mailer says no');
        },
      },
      queue: { defaults: { attempts: 2, backoff: 0 } },
    });
    await queue.add('bad', null, { id: 'a' });
    await until(async () => (await queue.counts()).dead === 1, PATIENT);
    process.env['COLUMNS'] = '80';
    const command = godwitOn(redis, 'tail', 'work', '--since', '0', '--type', 'retrying,dead');
    delete process.env['COLUMNS'];
    await command.said(/ dead /);
    await command.end('SIGINT');
    expect(command.out).toMatch(/ retrying +bad +a +TypeError: the mailer says no/);
    expect(command.out).toMatch(/ dead +bad +a +retries-exhausted: TypeError: the mailer says no\n/);
    expect(command.out).not.toContain('stack');
  });

  it('refuses a type that does not exist', async () => {
    const { code, err } = await run('tail', '--type', 'dead,cancelld');
    expect(code).toBe(2);
    expect(err).toMatch(/--type: "cancelld" is not one of added, delayed, .*; did you mean cancelled\?\n/);
  });
});

it('tail names the option --since and says what it takes', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null);
  expect(await run('tail', 'work', '--since', '10m')).toMatchObject({
    code: 2,
    err: expect.stringContaining(
      '--since must be the number of an event (eventId with --json), or 0 for all that are stored, got "10m"',
    ),
  });
});

describe('watch', () => {
  const days = [{ date: '2026-01-02', processed: 7, failed: 0, dead: 0 }];
  const counts = { waiting: 1204, active: 0, delayed: 0, dead: 0, completed: 7, failed: 0 };
  const count = { at: new Date(0), days, ...counts };
  const linesInto = (out: string[], screen: Screen) =>
    new WatchLines({
      isJson: false,
      jsonLine: () => undefined,
      line: (text) => out.push(text),
      paint: (_, text) => text,
      screen,
    });
  const shown = (width: number | undefined, ...queues: string[]) => {
    const out: string[] = [];
    const lines = linesInto(out, { width, color: false });
    lines.fit(queues);
    for (const queue of queues) {
      lines.show({ ...count, queue }, undefined);
      lines.show({ ...count, queue, waiting: 1239, dead: 2 }, { ...count, queue });
    }
    return out;
  };

  it('aligns its lines, and none is wider than the screen', () => {
    const out = shown(80, 'mail', 'a-queue-with-a-long-name');
    expect(out[0]).toMatch(/^TIME +QUEUE +WAITING +ACTIVE +DELAYED +DEAD +COMPLETED +FAILED$/);
    expect(out[1]).toMatch(/^00:00:00 +mail +1204 +0 +0 +0 +7 +0$/);
    expect(out[2]).toMatch(/^00:00:00 +mail +1239 \+35 +0 +0 +2 \+2 +7 +0$/);
    expect(out[3]).toMatch(/ a-queue-with-a…  /);
    expect(new Set(out.map((line) => line.length))).toEqual(new Set([80]));
  });

  it('leaves out columns, with a new header, when the screen becomes narrower', () => {
    const out: string[] = [];
    const screen = { width: 80, color: false };
    const lines = linesInto(out, screen);
    for (screen.width of [80, 40, 40]) {
      lines.fit(['mail']);
      lines.show({ ...count, queue: 'mail' }, undefined);
    }
    expect(out.map((line) => line.slice(0, 4))).toEqual(['TIME', '00:0', 'TIME', '00:0', '00:0']);
    expect(Math.max(...out.slice(2).map((line) => line.length))).toBeLessThanOrEqual(40);
  });

  it('shows no change at midnight, when the oldest day is no longer counted', () => {
    const nothing = { processed: 0, failed: 0, dead: 0 };
    const dayOf = (date: string, processed: number) => ({ ...nothing, date, processed });
    const before = {
      ...count,
      queue: 'mail',
      completed: 12,
      days: [dayOf('2026-01-02', 5), dayOf('2026-01-01', 7)],
    };
    const after = {
      ...count,
      queue: 'mail',
      completed: 8,
      days: [dayOf('2026-01-03', 1), dayOf('2026-01-02', 7)],
    };
    const out: unknown[] = [];
    const print = {
      jsonLine: (line: unknown) => out.push(line),
      line: (line: string) => out.push(line),
      paint: (_: unknown, text: string) => text,
      screen: { width: undefined, color: false },
    };
    new WatchLines({ ...print, isJson: false }).show(after, before);
    expect(out[1]).toMatch(/^00:00:00 +mail +1204 +0 +0 +0 +8 \+3 +0$/);
    new WatchLines({ ...print, isJson: true }).show(after, before);
    expect(out[2]).toEqual({
      at: new Date(0),
      queue: 'mail',
      ...counts,
      completed: 8,
      changes: { waiting: 0, active: 0, delayed: 0, dead: 0, completed: 3, failed: 0 },
    });
  });

  it('does not cut names in a pipe', () => {
    expect(shown(undefined, 'a-queue-with-a-long-name')[1]).toContain(' a-queue-with-a-long-name ');
  });

  it('goes on after an outage of Redis', async () => {
    const { queue } = await bootQueue(own, { watch: false });
    await queue.add('x', null);
    const command = godwitOn(own, 'watch', '--interval', '1');
    await command.said(/ work +1 /);
    await server.kill9();
    await command.said(/^godwit: .*Redis|^godwit: .*connection/m, 'err');
    await server.restart();
    await queue.add('x', null);
    await command.said(/ work +2 \+1 /);
    await command.said(/^godwit: the queues can be read again$/m, 'err');
    await command.end('SIGINT');
    expect(command.err.trimEnd().split('\n')).toHaveLength(2);
  });

  it('does not hide from the log of an exporter that its pages lack the queues', async () => {
    const command = godwitOn(own, 'exporter', '--port', '0', '--host', '127.0.0.1');
    const url = await command.said(/http:\S+/);
    const pageWith = (success: number) => async () =>
      (await (await fetch(url)).text()).includes(`godwit_collect_success ${success}\n`);
    await until(pageWith(1), PATIENT);
    await server.kill9();
    await until(pageWith(0), PATIENT);
    await command.said(/metrics of the queues are missing: .+$/m, 'err');
    await server.restart();
    await until(pageWith(1), PATIENT);
    await command.said(/metrics of the queues are complete again$/m, 'err');
    await command.end('SIGTERM');
    expect(command.err.trimEnd().split('\n')).toHaveLength(2);
  });
});

describe('top', () => {
  it('says how many queues it has no lines for', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const { queueOf } = await bootQueue(redis, { watch: false, queues: names.map((name) => ({ name })) });
    await Promise.all(names.map((name) => queueOf(name).add('x', 1)));
    await using inspector = createInspector({ connection: redis.url, prefix: redis.prefix });
    const print = new Printer(standardOutput(), { width: 80, color: false }, false, false, false);
    const shown = async (rows: number) =>
      page({ inspector, print, prefix: redis.prefix, values: {}, words: [] }, { columns: 80, rows });
    await until(async () => (await shown(24)).match(/^[a-e] /gm)?.length === 5, PATIENT);
    expect(await shown(24)).not.toContain('more');
    expect(await shown(7)).toMatch(/ [23] more queues {3}q ends\n/);
    expect((await shown(8)) + (await shown(9))).toMatch(/ 1 more queue {3}q ends\n/);
  });

  it('shows the jobs that have run longest under the queues', async () => {
    const end = latch('the end of the jobs');
    const { queue } = await bootQueue(redis, { watch: false, handlers: { slow: () => end.promise } });
    await queue.addBulk(Array.from({ length: 7 }, (_, i) => ({ name: 'slow', data: i })));
    await using inspector = createInspector({ connection: redis.url, prefix: redis.prefix });
    const print = new Printer(standardOutput(), { width: 80, color: false }, false, false, false);
    const shown = async (rows: number) =>
      page({ inspector, print, prefix: redis.prefix, values: {}, words: [] }, { columns: 80, rows });
    await until(async () => (await shown(24)).match(/^work +slow +/gm)?.length === 5, PATIENT);
    const lines = (await shown(24)).trimEnd().split('\n');
    expect(lines[0]).toMatch(/ 7 active /);
    expect(lines[5]).toMatch(/^QUEUE +NAME +ID +ATTEMPT +SINCE +PROCESS$/);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    // A longer page would scroll its head away. The last line is empty.
    for (const rows of [6, 9, 10, 11])
      expect((await shown(rows)).split('\n').length).toBeLessThanOrEqual(rows);
    const narrow = await page(
      { inspector, print, prefix: redis.prefix, values: {}, words: [] },
      { columns: 40, rows: 24 },
    );
    expect(narrow).toMatch(/^QUEUE +WAITING +ACTIVE +DEAD +STATE$/m);
    expect(narrow).toMatch(/^work +0 +7 +0 +running$/m);
    expect(narrow.split('\n').filter((line) => line.length > 40)).toEqual([]);
    end.open();
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('gives the terminal back at %s', async (signal) => {
    const command = onTerminal('xterm', 'top');
    // Nobody has given this terminal a size.
    await command.said(/godwit .* q ends/);
    command.kill(signal);
    const { code, out } = await command.result();
    expect([code, out.endsWith('\u001b[?25h\u001b[?1049l')]).toEqual([0, true]);
  });
});

it('a dumb terminal gets no colours, and top refuses it', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', 1);
  const limits = ['limits', 'work'] as const;
  expect((await onTerminal('xterm', ...limits).result()).out).toContain('\u001b[');
  const { code, out } = await onTerminal('dumb', ...limits).result();
  expect([code, out]).toEqual([0, expect.stringMatching(/^OF +RATE +LEFT +RUNNING +WAITING +STATE\n/)]);
  expect(await onTerminal('dumb', 'top').result()).toMatchObject({ code: 2, out: '' });
});
