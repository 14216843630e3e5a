import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LimitRule, RateRule } from '#lib/contract/limit-verbs.js';
import { allScripts, sourceOf } from '#lib/engine/script.js';
import '#lib/engine/redis-engine.js';
import type { BreakerRule } from '#lib/job/limit-rule.js';
import { BreakerBook } from '#lib/memory/breakers.js';
import {
  isCharged,
  rateCharged,
  rateLeft,
  rateOverAt,
  roomOf,
  useCharged,
  useOverAt,
  type LimitUse,
} from '#lib/memory/rates.js';
import { mutated } from '../support/mutant.js';
import { useRedis } from '../support/redis.js';

// The functions of rates, limits and breakers alone, against those of the memory engine: thousands of random calls in one script. A
// sequence of the model reaches few of these states, and takes as long for one of them.
const redis = useRedis({ rights: 'all' });
const parameters = { numRuns: 100, seed: 1 };

/** The functions that a script has from these fragments. */
function functionsOf(name: string, ...fragments: readonly string[]): string {
  const { text } = allScripts().find((script) => script.name === name)!;
  const count = text.split('\n').length;
  const changed = (mutated()?.(name, text) ?? text).split('\n');
  // A mutant may have further lines behind the first one.
  return changed
    .filter((_, i) => {
      const line = i === 0 ? 1 : i + 1 + count - changed.length;
      return line < 2 || fragments.some((one) => sourceOf(name, line).startsWith(`shared/${one}.lua:`));
    })
    .filter((line, i) => i > 0 || !line.startsWith('#!'))
    .join('\n');
}

/** Runs `body` for each case. Each answers some numbers and texts. */
async function answersOf(functions: string, body: string, cases: readonly unknown[]): Promise<unknown[][]> {
  const main = `
local function exact(number) return string.format('%.17g', number) end
local answers = {}
for i, case in ipairs(cjson.decode(ARGV[1])) do
${body}
end
return answers`;
  const keys = Array.from({ length: 40 }, () => `${redis.prefix}state`);
  const answers = await redis.admin.eval(functions + main, keys.length, ...keys, JSON.stringify(cases));
  await redis.admin.del(keys[0]!);
  return (answers as unknown[][]).map((each) => each.map(value));
}

/** Texts are in brackets, so that they stay texts. */
function value(text: unknown): unknown {
  if (text === 'inf') return Infinity;
  return String(text).startsWith('[') ? text : Number(text) + 0;
}

const START = 1_700_000_000_000;
const rate: fc.Arbitrary<RateRule> = fc
  .record({
    max: fc.constantFrom(1, 2, 3, 7, 10, 50),
    per: fc.constantFrom(100, 1_000, 60_000),
    window: fc.constantFrom('sliding' as const, 'fixed' as const, 'bucket' as const),
    burst: fc.constantFrom(1, 2, 50),
  })
  .map((drawn) => ({
    ...drawn,
    burst: drawn.window === 'bucket' ? drawn.burst : Math.min(drawn.burst, drawn.max),
  }));

/** How far the clock moves, in parts of the time of the rate. It may be set back. */
const moves = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(0, 0.001, 0.01, 0.05, 0.5, 0.99, 1, 1.01, 2) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 1_100 }).map((thousandths) => thousandths / 1_000) },
  { weight: 1, arbitrary: fc.constantFrom(-0.01, -0.5, -1, -1.5, -3) },
);
const counts = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(1, 2, 3) },
  { weight: 2, arbitrary: fc.constantFrom(-1, -2, -3, -4, 0, 0.25, 20) },
);
const step = fc.record({
  move: moves,
  count: counts,
  isOther: fc.nat({ max: 15 }),
  ago: fc.constantFrom(0, 0, 0.01, 0.05, 0.5, 2),
});
const steps = fc.array(step, { minLength: 30, maxLength: 30 });

describe('functions of a rate', () => {
  const body = `
  local left, next_in, cost_left = rate_left(case.rate, case.text, case.now)
  answers[i] = { exact(left), exact(next_in), exact(cost_left), '[' .. rate_corrected(case.rate, case.text, case.now, case.count, case.at),
    exact(rate_over_at(case.rate, case.text, case.now)) }`;

  it('answer what those of the memory engine do', async () => {
    const drawn = fc.sample(fc.tuple(rate, rate, steps), parameters);
    const cases = drawn.flatMap(([usual, other, all]) => {
      let now = START;
      let text = '';
      return all.map(({ move, count, isOther, ago }) => {
        // The rule may change, and find what the one before it has left.
        const its = isOther === 0 ? other : usual;
        now += Math.round(move * its.per);
        const one = { rate: its, text, now, count, at: now - Math.round(ago * its.per) };
        text = rateCharged(its, text, now, count, one.at);
        return one;
      });
    });
    const answers = await answersOf(
      `${functionsOf('claim-limited', 'rates')}
${functionsOf('share', 'corrections')}`,
      body,
      cases,
    );
    for (const [i, one] of cases.entries()) {
      const { left, nextMs, costLeft } = rateLeft(one.rate, one.text, one.now);
      const charged = `[${rateCharged(one.rate, one.text, one.now, one.count, one.at)}`;
      const overAt = rateOverAt(one.rate, one.text, one.now);
      const expected = [left + 0, nextMs + 0, costLeft, charged, overAt];
      expect({ ...one, answer: answers[i] }).toEqual({ ...one, answer: expected });
    }
  });
});

const breaker: fc.Arbitrary<BreakerRule> = fc.record({
  failures: fc.constantFrom(1, 2, 4, 10),
  ratio: fc.constantFrom(0, 0.25, 0.5, 1),
  window: fc.constantFrom(1_000, 10_000),
  openFor: fc.constantFrom(500, 5_000),
  probes: fc.constantFrom(1, 3),
});

describe('functions of a limit', () => {
  const body = `
  local left, next_in = rate_room(case.rule, case.text, case.now, math.huge)
  local function charge(rate, state) return rate_corrected(rate, state, case.now, case.count, case.now) end
  local opens_in, after = charge_rate('q', case.rule, case.text, case.now, case.count, case.kept, charge)
  answers[i] = { exact(left), exact(next_in), exact(opens_in), '[' .. after, exact(state_over_at(case.rule, case.text, case.now)) }`;

  const ruleAndUse = fc
    .record({
      rate,
      breaker,
      has: fc.constantFrom('rate', 'breaker', 'both', 'none'),
      blockedMs: fc.constantFrom(0, 0, -500, 1, 500, 90_000),
      mark: fc.constantFrom('', '', '!', '?') as fc.Arbitrary<LimitUse['mark']>,
      tillMs: fc.constantFrom(-500, 0, 1, 500),
      count: counts,
      kept: fc.constantFrom(undefined, undefined, 0, 1),
    })
    .map(({ rate: its, breaker: broken, has, blockedMs, mark, tillMs, count, kept }) => {
      const rule: LimitRule = {
        ...((has === 'rate' || has === 'both') && { rate: its }),
        ...((has === 'breaker' || has === 'both') && { breaker: broken }),
      };
      const isOpen = rule.breaker && mark !== '';
      const use: LimitUse = {
        blocked: blockedMs === 0 ? 0 : START + blockedMs,
        rate: rule.rate ? rateCharged(its, '', START - 10, 1) : '',
        mark: isOpen ? mark : '',
        till: isOpen ? START + tillMs : 0,
      };
      return { rule, use, count, kept };
    });

  it('answer what those of the memory engine do', async () => {
    const drawn = fc.sample(ruleAndUse, { ...parameters, numRuns: 1_000 });
    const textOf = ({ blocked, rate: its, mark, till }: LimitUse) =>
      `${blocked}${mark && mark + String(till)} ${its}`;
    const cases = drawn.map(({ use, ...more }) => ({ ...more, text: textOf(use), now: START }));
    const answers = await answersOf(
      `${functionsOf('claim-limited', 'rates', 'limits')}
${functionsOf('share', 'corrections')}`,
      body,
      cases,
    );
    for (const [i, { rule, use, count, kept }] of drawn.entries()) {
      const { left, nextMs } = roomOf(rule, use, START);
      const after = isCharged(rule, use) ? useCharged(rule, use, START, count, kept ?? null) : use;
      const room = roomOf(rule, after, START);
      const opensIn = isCharged(rule, use) && room.left < 1 ? Math.max(0, room.nextMs) : 0;
      const expected = [left + 0, nextMs + 0, opensIn + 0, `[${textOf(after)}`, useOverAt(rule, use, START)];
      const one = cases[i];
      expect({ ...one, answer: answers[i] }).toEqual({ ...one, answer: expected });
    }
  });
});

describe('functions of a circuit breaker and of a retry budget', () => {
  const body = `
  local opens = must_open(case.field, case.breaker, case.now, case.completed, case.failed)
  if opens then redis.call('HDEL', KEYS[1], 'b:' .. case.field) end
  local first, each = book_retries(case.field, case.budget, case.now, case.retries, case.completed)
  answers[i] = { opens and 1 or 0, exact(first), exact(each) }`;

  it('answer what those of the memory engine do', async () => {
    const drawn = fc.sample(
      fc.record({
        breaker,
        budget: fc.record(
          {
            max: fc.constantFrom(1, 2, 5),
            per: fc.constantFrom(1_000, 10_000),
            percent: fc.constantFrom(25, 100),
          },
          { requiredKeys: ['max', 'per'] },
        ),
        all: fc.array(
          fc.record({
            // In tenths of the window.
            move: fc.constantFrom(0, 0.1, 0.5, 1, 1, 3, 8, 9, 10, 11, -1, -3),
            completed: fc.nat({ max: 3 }),
            failed: fc.nat({ max: 2 }),
            // Below 0: booked retries that do not happen.
            retries: fc.constantFrom(-3, -1, 0, 0, 1, 2),
          }),
          { minLength: 20, maxLength: 20 },
        ),
      }),
      parameters,
    );
    const book = new BreakerBook();
    const unused = { blocked: 0, rate: '', mark: '', till: 0 } as const;
    const expected: unknown[] = [];
    const cases = drawn.flatMap(({ breaker: its, budget, all }, at) => {
      let now = START;
      const field = `n:${at}` as const;
      return all.map(({ move, completed, failed, retries }) => {
        now += (move * its.window) / 10;
        // All runs that completed are first attempts.
        const report = { field, completed, failed, retries, firsts: completed };
        const change = book.report(report, its, unused, now);
        const { firstMs, eachMs } = book.book(report, budget, now);
        const one = { field, breaker: its, budget, now, completed, failed, retries };
        expected.push({ ...one, answer: [change === null ? 0 : 1, firstMs, eachMs] });
        return one;
      });
    });
    const answers = await answersOf(functionsOf('report', 'breakers'), body, cases);
    expect(cases.map((one, i) => ({ ...one, answer: answers[i] }))).toEqual(expected);
  });
});
