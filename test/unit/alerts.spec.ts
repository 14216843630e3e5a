import { describe, expect, it } from 'vitest';
import {
  advance,
  alertsOf,
  NO_STATE,
  readState,
  delivered,
  type Alert,
  type Receivers,
} from '#lib/subpaths/alerts/alert-state.js';
import { measure, type AlertSource } from '#lib/subpaths/alerts/measure.js';
import { checkAlertsOptions } from '#lib/subpaths/alerts/queue-alerts.js';
import type { AlertRule } from '#lib/subpaths/alerts/rules.js';
import { webhook } from '#lib/subpaths/alerts/webhook.js';

const PATH = 'createAlerts()';
const notify = () => undefined;
const ONE: Receivers = { count: 1, busy: new Set() };

/** Plays values of one queue at times in seconds. Returns the notifications with their times. `hears` is false if one fails. */
function play(
  rule: Partial<AlertRule>,
  values: readonly (readonly [second: number, value: number])[],
  hears: (second: number, receiver: number) => boolean = () => true,
  receivers = ONE,
) {
  const { rules } = checkAlertsOptions({ rules: [{ rule: 'backlog', limit: 10, ...rule }], notify }, PATH);
  let { rows } = NO_STATE;
  const heard: [number, string][] = [];
  const sent: { second: number; receiver: number; alert: Alert }[] = [];
  for (const [second, value] of values) {
    const now = second * 1_000;
    rows = advance(rows, [{ rule: rules[0]!, queue: 'work', value }], rules, receivers, now);
    for (const { key, receiver, alert } of alertsOf(rows, rules, null, 'undelivered', now)) {
      heard.push([second, alert.state]);
      sent.push({ second, receiver, alert });
      if (hears(second, receiver)) rows = delivered(rows, key, alert, now);
    }
  }
  return { heard, sent, rows };
}

describe('an alert', () => {
  it('fires once above the limit, and is resolved once', () => {
    const { heard, rows } = play({ cooldown: 0 }, [
      [0, 10],
      [1, 11],
      [2, 50],
      [3, 11],
      [4, 10],
      [5, 0],
      [6, 0],
    ]);
    expect(heard).toEqual([
      [1, 'firing'],
      [4, 'resolved'],
    ]);
    expect(rows).toEqual({});
  });

  it('waits for `for`, and starts again after each value that is not above the limit', () => {
    const values = [0, 30, 59].map((second) => [second, 99] as const);
    const rule = { for: '1m' };
    expect(play(rule, [...values, [60, 99]]).heard).toEqual([[60, 'firing']]);
    expect(play(rule, [...values, [59.5, 0], [60, 99], [119, 99]]).heard).toEqual([]);
  });

  it('does not wait for the old time after the clock was put back', () => {
    const rule = { for: '1m', cooldown: '2m' };
    expect(
      play(rule, [
        [10_000, 11],
        [0, 11],
        [59, 11],
        [60, 11],
      ]).heard,
    ).toEqual([[60, 'firing']]);
    expect(
      play({ cooldown: '2m' }, [
        [10_000, 11],
        [10_001, 0],
        [0, 11],
      ]).heard,
    ).toEqual([
      [10_000, 'firing'],
      [10_001, 'resolved'],
      [0, 'firing'],
    ]);
    // A server with a clock that is a little behind took over.
    expect(
      play({ cooldown: '2m' }, [
        [10_000, 11],
        [10_001, 0],
        [9_999, 11],
      ]).heard,
    ).toHaveLength(2);
  });

  it('does not flap between resolve and limit', () => {
    expect(
      play({ resolve: 3 }, [
        [0, 11],
        [1, 4],
        [2, 11],
        [3, 10],
        [4, 3],
      ]).heard,
    ).toEqual([
      [0, 'firing'],
      [4, 'resolved'],
    ]);
  });

  it('does not fire again within the cooldown, but at its end if the value is still above', () => {
    const again = [
      [0, 11],
      [10, 0],
      [20, 11],
    ] as const;
    const rule = { cooldown: '1m' };
    expect(play(rule, [...again, [59, 11], [60, 11], [70, 0]]).heard).toEqual([
      [0, 'firing'],
      [10, 'resolved'],
      [60, 'firing'],
      [70, 'resolved'],
    ]);
    // It ended before any alert was sent.
    expect(play(rule, [...again, [30, 0], [60, 0]]).heard).toEqual([
      [0, 'firing'],
      [10, 'resolved'],
    ]);
  });

  it('is sent again until it is delivered; its end is sent anyway, because a failed call may have delivered the alert', () => {
    const values = [
      [0, 11],
      [1, 11],
      [2, 0],
      [3, 0],
      [4, 0],
    ] as const;
    const { heard, rows } = play({}, values, (second) => second === 3);
    expect(heard).toEqual([
      [0, 'firing'],
      [1, 'firing'],
      [2, 'resolved'],
      [3, 'resolved'],
    ]);
    expect(rows).toEqual({});
  });

  it('that was delivered to nobody starts no cooldown', () => {
    const values = [
      [0, 11],
      [1, 0],
      [2, 11],
      [3, 11],
    ] as const;
    const lost = play({}, values, (second) => second > 1);
    expect(lost.heard).toEqual([
      [0, 'firing'],
      [1, 'resolved'],
      [2, 'firing'],
    ]);
    expect(lost.sent[2]!.alert.id).toBe(lost.sent[0]!.alert.id);
    const unheard = play({}, values, (second) => second > 0);
    expect(unheard.heard).toEqual(lost.heard);
    expect(unheard.sent[2]!.alert.id).not.toBe(unheard.sent[0]!.alert.id);
  });

  it('is sent once to a receiver while another one fails', () => {
    const { sent, rows } = play(
      { cooldown: '1m' },
      [
        [0, 11],
        [10, 11],
        [20, 0],
        [30, 11],
        [60, 11],
      ],
      (_, receiver) => receiver === 0,
      { ...ONE, count: 2 },
    );
    expect(
      sent.filter(({ receiver }) => receiver === 0).map(({ second, alert }) => [second, alert.state]),
    ).toEqual([
      [0, 'firing'],
      [20, 'resolved'],
      [60, 'firing'],
    ]);
    expect(
      sent.filter(({ receiver }) => receiver === 1).map(({ second, alert }) => [second, alert.state]),
    ).toEqual([
      [0, 'firing'],
      [10, 'firing'],
      [20, 'resolved'],
      [30, 'firing'],
      [60, 'firing'],
    ]);
    const { rules } = checkAlertsOptions({ rules: [{ rule: 'backlog', limit: 10 }], notify }, PATH);
    expect(alertsOf(rows, rules, null, 'firing', 60_000)).toHaveLength(1);
    // A receiver that was removed is forgotten.
    expect(Object.keys(advance(rows, [], rules, ONE, 61_000))).toHaveLength(1);
  });

  it('does not change while a notification of it is being sent', () => {
    const { rules } = checkAlertsOptions({ rules: [{ rule: 'backlog', limit: 10 }], notify }, PATH);
    const look = (rows: typeof NO_STATE.rows, value: number, now: number, ...busy: string[]) =>
      advance(
        rows,
        [{ rule: rules[0]!, queue: 'work', value }],
        rules,
        { count: 1, busy: new Set(busy) },
        now,
      );
    const due = (rows: typeof NO_STATE.rows) => alertsOf(rows, rules, null, 'undelivered', 0)[0];
    let rows = look({}, 11, 0);
    const { key, alert } = due(rows)!;
    expect(look(rows, 0, 1_000, key)).toEqual(rows);
    rows = look(delivered(rows, key, alert, 2_000), 0, 2_000);
    const end = due(rows)!.alert;
    expect(end).toMatchObject({ id: alert.id, state: 'resolved' });
    // The value is above the limit again while the end is being sent: then this is another alert.
    expect(look(rows, 11, 3_000, key)).toEqual(rows);
    rows = look(delivered(rows, key, end, 4_000), 11, 700_000);
    expect(due(rows)!.alert).toMatchObject({ state: 'firing', since: new Date(700_000) });
  });

  it('is sent again as the same alert if it fires again while it is unknown whether its end was delivered', () => {
    const { heard, sent, rows } = play(
      {},
      [
        [0, 11],
        [1, 0],
        [2, 11],
        [3, 11],
        [4, 0],
      ],
      (second) => second !== 1 && second !== 2,
    );
    expect(heard).toEqual([
      [0, 'firing'],
      [1, 'resolved'],
      [2, 'firing'],
      [3, 'firing'],
      [4, 'resolved'],
    ]);
    expect(new Set(sent.map(({ alert }) => alert.id)).size).toBe(1);
    // A repeated call has the same time, and a new firing or end has its own: a receiver can tell them apart.
    expect(sent.map(({ alert }) => alert.at.getTime())).toEqual([0, 1_000, 2_000, 2_000, 4_000]);
    // The cooldown starts when the firing was delivered.
    expect(Object.values(rows)).toMatchObject([{ notifiedAt: 3_000 }]);
  });

  it('is resolved if its queue is gone, and forgotten if its rule is gone', () => {
    const { rules } = checkAlertsOptions({ rules: [{ rule: 'backlog', limit: 10 }], notify }, PATH);
    const { rows } = play({}, [[0, 11]]);
    const gone = advance(rows, [], rules, ONE, 1_000);
    expect(alertsOf(gone, rules, null, 'undelivered', 1_000)).toMatchObject([
      { alert: { state: 'resolved' } },
    ]);
    expect(advance(rows, [], [], ONE, 1_000)).toEqual({});
  });

  it('reports its value, with the same id at its end', () => {
    const { rules } = checkAlertsOptions(
      { rules: [{ rule: 'oldestWaiting', limit: '5m', severity: 'critical' }], notify },
      PATH,
    );
    const rows = advance({}, [{ rule: rules[0]!, queue: 'mail', value: 420_000 }], rules, ONE, 5_000);
    expect(alertsOf(rows, rules, 'shop', 'undelivered', 6_000)[0]!.alert).toEqual({
      id: 'oldestWaiting:mail:5000',
      state: 'firing',
      rule: 'oldestWaiting',
      name: 'oldestWaiting',
      severity: 'critical',
      source: 'shop',
      queue: 'mail',
      value: 420_000,
      limit: 300_000,
      unit: 'ms',
      since: new Date(5_000),
      at: new Date(5_000),
      text: 'queue "mail": the oldest job has waited 7 min (limit 5 min)',
    });
  });

  it('starts again if the stored state is unreadable', () => {
    for (const text of ['', '{', 'null', '5', '{"rows":5}', '[]']) expect(readState(text)).toEqual(NO_STATE);
  });
});

describe('the value of longestRun', () => {
  it('is the time of the oldest running job of the queue, in whole ms and never below 0', async () => {
    const at = (ms: number) => new Date(ms);
    const running = (...jobs: readonly (readonly [queue: string, since: number])[]) => ({
      pools: [{ jobs: jobs.map(([queue, since]) => ({ queue, since: at(since) })) }],
    });
    const names = ['work', 'idle', 'early'];
    const source = {
      engine: { now: () => 10_000.7 },
      inspector: {
        readableQueues: async () => ({ queues: names.map((name) => ({ name, counts: {} })), faults: [] }),
        workers: async () => [
          running(['work', 9_000], ['other', 1_000]),
          running(['work', 4_000], ['early', 10_001]),
          running(),
        ],
      },
    } as unknown as AlertSource;
    const { rules } = checkAlertsOptions(
      { rules: [{ rule: 'longestRun', limit: '5s', queues: names }], notify },
      PATH,
    );
    const { readings } = await measure(source, rules, {});
    expect(readings.map(({ queue, value }) => [queue, value])).toEqual([
      ['work', 6_000],
      ['idle', 0],
      ['early', 0],
    ]);
    const rows = advance({}, readings, rules, ONE, 10_000);
    expect(alertsOf(rows, rules, null, 'firing', 10_000).map(({ alert }) => alert.text)).toEqual([
      'queue "work": a job has been running for 6 s (limit 5 s)',
    ]);
  });
});

it('counters of a time that is still to come are left out, after the clock was put back', async () => {
  const day = (failed: number) => [{ date: '2026-11-30', processed: 0, failed, dead: failed }];
  const source = {
    engine: { now: () => 600_000, admin: { stats: async () => ({ days: day(9) }) } },
    inspector: { readableQueues: async () => ({ queues: [{ name: 'work', counts: {} }], faults: [] }) },
  } as unknown as AlertSource;
  const { rules } = checkAlertsOptions({ rules: [{ rule: 'deadRate', limit: 3 }], notify }, PATH);
  const work = [
    { at: 500_000, days: day(8) },
    { at: 9_000_000, days: day(8) },
  ];
  const { readings, counters } = await measure(source, rules, { work: work.slice(1) });
  // Nothing is known about the window yet.
  expect([readings[0]!.value, counters['work']!.map(({ at }) => at)]).toEqual([0, [600_000]]);
  const both = await measure(source, rules, { work });
  expect([both.readings[0]!.value, both.counters['work']!.map(({ at }) => at)]).toEqual([
    1,
    [500_000, 600_000],
  ]);
});

describe('options', () => {
  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /createAlerts\(\) must be/],
    ['no rules', { notify }, /\.rules must be a list/],
    ['an empty list', { rules: [], notify }, /\.rules must be a list of 1 to 100 rules/],
    ['nobody to tell', { rules: [{ rule: 'paused' }] }, /\.notify must be/],
    [
      'an address in place of a function',
      { rules: [{ rule: 'paused' }], notify: 'http://x' },
      /\.notify must be/,
    ],
    ['an unknown option', { rules: [{ rule: 'paused' }], notify, every: 1 }, /every/],
    ['a short interval', { rules: [{ rule: 'paused' }], notify, interval: 10 }, /\.interval/],
    ['an unknown rule', { rules: [{ rule: 'sad' }], notify }, /\.rules\[0\]\.rule must be one of/],
    ['a rule without its kind', { rules: [{ limit: 5 }], notify }, /\.rules\[0\]\.rule must be one of/],
    ['no limit', { rules: [{ rule: 'backlog' }], notify }, /\.rules\[0\]\.limit must be/],
    [
      'a limit of another unit',
      { rules: [{ rule: 'oldestWaiting', limit: 'many' }], notify },
      /\.limit must be/,
    ],
    [
      'a ratio above 1',
      { rules: [{ rule: 'failureRatio', limit: 20 }], notify },
      /\.limit must be a number from 0/,
    ],
    ['a limit of a flag', { rules: [{ rule: 'paused', limit: 1 }], notify }, /\.limit must be left out/],
    [
      'resolve above limit',
      { rules: [{ rule: 'dead', limit: 5, resolve: 6 }], notify },
      /\.resolve must be at most/,
    ],
    [
      'queues of a value of the server',
      { rules: [{ rule: 'memory', limit: 0.9, queues: ['a'] }], notify },
      /\.queues must be left/,
    ],
    [
      'a window without use',
      { rules: [{ rule: 'dead', limit: 5, window: '5m' }], notify },
      /\.window must be left/,
    ],
    [
      'min without use',
      { rules: [{ rule: 'deadRate', limit: 5, min: 5 }], notify },
      /\.min must be left out/,
    ],
    [
      'two of one name',
      { rules: [{ rule: 'paused' }, { rule: 'paused' }], notify },
      /\[1\]\.name must be given/,
    ],
    [
      'a name with two lines: its alerts would be stored as those of another rule',
      { rules: [{ rule: 'paused', name: 'too\nmany' }], notify },
      /\[0\]\.name must be well-formed text of 1 to 100 characters, without control characters/,
    ],
    [
      'a name that no header can carry',
      { rules: [{ rule: 'paused', name: '\ud800' }], notify },
      /\[0\]\.name/,
    ],
    ['a name of no queue', { rules: [{ rule: 'paused', queues: ['a b'] }], notify }, /a b/],
  ])('%s', (_, options, message) => {
    expect(() => checkAlertsOptions(options, PATH)).toThrow(message);
  });

  it('of a webhook, without showing its secrets', () => {
    for (const [options, message] of [
      [{}, /\.url must be/],
      [{ url: 'file:///etc/passwd' }, /\.url must be/],
      [{ url: 'hooks.example.com/SECRET' }, /\.url must be/],
      [{ url: 'https://user:SECRET%@x' }, /\.url must be/],
      [{ url: 'https://x', secret: 'SECRET' }, /at least 16 characters/],
      [{ url: 'https://x', headers: { 'a b': 'SECRET' } }, /\.headers must be/],
      [{ url: 'https://x', attempts: 9 }, /\.attempts/],
      [{ url: 'https://x', timeout: '1h' }, /\.timeout/],
    ] as const) {
      expect(() => webhook(options as never)).toThrow(message);
      expect(() => webhook(options as never)).not.toThrow(/SECRET/);
    }
  });
});
