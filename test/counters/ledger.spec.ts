import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CALLS, COMMANDS, Ledger, UPDATE, type Counters, type Measured } from './ledger.js';
import { temporaryFolder } from '../support/cleanup.js';

const SERVER = 'redis 7.0';

function fileWith(counters: Record<string, Counters>): URL {
  const folder = temporaryFolder();
  const path = join(folder, 'counters.json');
  writeFileSync(path, JSON.stringify({ server: SERVER, counters }));
  return pathToFileURL(path);
}

const measured = (counters: Counters, more: Partial<Measured> = {}): Measured => ({
  server: SERVER,
  counters,
  ...more,
});

/** The answer to a measurement of `consume` if 0.2 commands are committed. */
async function answerTo(one: Measured, committed: Counters = { [COMMANDS]: 0.2 }): Promise<string | null> {
  const ledger = new Ledger(false, fileWith({ consume: committed }));
  return ledger
    .expectCommitted('consume', async () => one)
    .then(
      () => null,
      (error: Error) => error.message,
    );
}

describe('a counter', () => {
  it('that equals the committed value, except for rounding, passes', async () => {
    expect(await answerTo(measured({ [COMMANDS]: 0.2 }))).toBe(null);
    expect(await answerTo(measured({ [COMMANDS]: 0.2009 }))).toBe(null);
    expect(await answerTo(measured({ [COMMANDS]: 0 }), { [COMMANDS]: 0 })).toBe(null);
  });

  it('that is more fails, with its name, both values and what to do', async () => {
    const said = await answerTo(
      measured({ [COMMANDS]: 0.21 }, { detail: '100 jobs took evalsha 1, hget 20' }),
    );
    expect(said).toContain('consume: the counters are not those of test/counters/counters.json');
    expect(said).toContain(`${COMMANDS}: committed 0.2, measured 0.21, MORE by 5.0 %: a regression`);
    expect(said).toContain('100 jobs took evalsha 1, hget 20');
    expect(said).toContain(UPDATE);
  });

  it('that is less fails too, so that the gain is committed', async () => {
    const said = await answerTo(measured({ [COMMANDS]: 0.19 }));
    expect(said).toContain(`${COMMANDS}: committed 0.2, measured 0.19, less by 5.0 %: a gain to be kept`);
    expect(said).toContain(UPDATE);
  });

  it('that was 0 and is more now fails', async () => {
    expect(await answerTo(measured({ bytes: 0.01 }), { bytes: 0 })).toContain(
      'bytes: committed 0, measured 0.01, MORE: a regression',
    );
  });

  it('may differ by its own tolerance', async () => {
    const tolerances = { [COMMANDS]: 0.1 };
    expect(await answerTo(measured({ [COMMANDS]: 0.21 }, { tolerances }))).toBe(null);
    expect(await answerTo(measured({ [COMMANDS]: 0.23 }, { tolerances }))).toContain('MORE by 15.0 %');
  });

  it('may differ by its tolerance plus its spare', async () => {
    const more = { tolerances: { [COMMANDS]: 0.1 }, spares: { [COMMANDS]: 1 } };
    expect(await answerTo(measured({ [COMMANDS]: 1.21 }, more))).toBe(null);
    expect(await answerTo(measured({ [COMMANDS]: 1.23 }, more))).toContain('MORE');
  });

  it('of commands may differ by less if there are as many calls as committed', async () => {
    const more = { tolerances: { [COMMANDS]: 0.1, [CALLS]: 0.1 }, toleranceOfSameCalls: 0.01 };
    const committed = { [COMMANDS]: 0.2, [CALLS]: 2 };
    const answer = (commands: number, calls: number) =>
      answerTo(measured({ [COMMANDS]: commands, [CALLS]: calls }, more), committed);
    expect(await answer(0.201, 2)).toBe(null);
    expect(await answer(0.21, 2)).toContain('MORE by 5.0 %');
    expect(await answer(0.21, 2.1)).toBe(null);
  });

  it('of which only one side knows fails', async () => {
    expect(await answerTo(measured({}))).toContain(`${COMMANDS}: committed 0.2, measured nothing`);
    expect(await answerTo(measured({ [COMMANDS]: 0.2, bytes: 3 }))).toContain(
      'bytes: committed nothing, measured 3',
    );
  });

  it('that depends on the server has only a bound on another server', async () => {
    const elsewhere = { server: 'valkey 9.1', isOfServer: true };
    expect(await answerTo(measured({ [COMMANDS]: 0.15 }, elsewhere))).toBe(null);
    expect(await answerTo(measured({ [COMMANDS]: 0.24 }, elsewhere))).toBe(null);
    expect(await answerTo(measured({ [COMMANDS]: 0.26 }, elsewhere))).toContain(
      'measured 0.26 on valkey 9.1',
    );
    expect(await answerTo(measured({ [COMMANDS]: 0.24 }, { server: 'valkey 9.1' }))).toContain('MORE');
  });
});

describe('the committed values', () => {
  it('that nothing measures any more are named', async () => {
    const ledger = new Ledger(false, fileWith({ consume: { [COMMANDS]: 0.2 }, 'add by hand': {} }));
    await ledger.expectCommitted('consume', async () => measured({ [COMMANDS]: 0.2 }));
    expect(() => ledger.close()).toThrow(/not measured by any test: add by hand\. To leave it out: npm run/);
  });

  it('become what an update has measured', async () => {
    const file = fileWith({ consume: { [COMMANDS]: 0.2 }, 'add by hand': {} });
    const ledger = new Ledger(true, file);
    await ledger.expectCommitted('consume', async () => measured({ [COMMANDS]: 0.123456 }));
    ledger.close();
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      server: SERVER,
      counters: { consume: { [COMMANDS]: 0.1235 } },
    });
  });

  it('stay if a measurement of an update fails', async () => {
    const file = fileWith({ consume: { [COMMANDS]: 0.2 } });
    const before = readFileSync(file, 'utf8');
    const ledger = new Ledger(true, file);
    const failing = ledger.expectCommitted('consume', () => Promise.reject(new Error('no server')));
    await expect(failing).rejects.toThrow('no server');
    expect(() => ledger.close()).toThrow('consume could not be measured, so nothing is written');
    expect(readFileSync(file, 'utf8')).toBe(before);
  });
});
