import { readFileSync, writeFileSync } from 'node:fs';

/** Counters of one measurement by name, unit included. */
export type Counters = Readonly<Record<string, number>>;

export const COMMANDS = 'Redis commands per job';
export const CALLS = 'script calls per 1,000 jobs';

export interface Measured {
  /** The server of the measurement: `redis 7.0`. */
  readonly server: string;
  readonly counters: Counters;
  /**
   * By which share a counter may differ from the committed one. @default for each 0.005, a little more than rounding
   */
  readonly tolerances?: Counters;
  /** By how much more a counter may differ, in its own unit. @default 0 for each */
  readonly spares?: Counters;
  /**
   * By which share the commands may differ instead if there are as many script calls as committed. A tolerance with room for one
   * more call has room for one more command in each call too. @default `tolerances`
   */
  readonly toleranceOfSameCalls?: number;
  /** The memory of a key depends on the server. On another server it may be less, or a quarter more. @default false */
  readonly isOfServer?: boolean;
  /** The parts of the counters, to find the one that has changed. */
  readonly detail?: string;
}

interface Book {
  readonly server: string;
  readonly counters: Readonly<Record<string, Counters>>;
}

export const UPDATE = 'npm run counters:update';
const FILE = new URL('counters.json', import.meta.url);
const TOLERANCE = 0.005;
const OTHER_SERVER = 1.25;
const DIGITS = 4;

/** Compares a measurement with the committed one. If `GODWIT_COUNTERS` is `update`, writes the measurement there. */
export class Ledger {
  private readonly committed: Book;
  private readonly measured = new Map<string, Measured | null>();

  constructor(
    private readonly isUpdate = process.env['GODWIT_COUNTERS'] === 'update',
    private readonly file = FILE,
  ) {
    this.committed = JSON.parse(readFileSync(file, 'utf8')) as Book;
  }

  /** Rejects if a counter is not as committed. More is a regression. Less is a gain, which should be committed. */
  async expectCommitted(what: string, measure: () => Promise<Measured>): Promise<void> {
    this.measured.set(what, null);
    const measured = await measure();
    this.measured.set(what, measured);
    if (this.isUpdate) return;
    const faults = faultsOf(measured, this.committed.counters[what] ?? {}, this.committed.server);
    if (faults.length > 0) throw new Error(failure(what, faults, measured.detail));
  }

  /** Called once all is measured. Throws if a committed measurement is missing. An update removes it. */
  close(): void {
    if (!this.isUpdate) {
      const stale = Object.keys(this.committed.counters).filter((what) => !this.measured.has(what));
      if (stale.length === 0) return;
      throw new Error(
        `committed, and not measured by any test: ${stale.join('; ')}. To leave it out: ${UPDATE}`,
      );
    }
    const entries = [...this.measured].map(([what, measured]) => {
      if (measured === null) throw new Error(`${what} could not be measured, so nothing is written`);
      return { what, ...measured };
    });
    const counters = Object.fromEntries(entries.map((entry) => [entry.what, rounded(entry.counters)]));
    const book: Book = { server: entries[0]!.server, counters };
    writeFileSync(this.file, `${JSON.stringify(book, null, 2)}\n`);
  }
}

function faultsOf(measured: Measured, committed: Counters, committedServer: string): string[] {
  const { server, isOfServer = false, toleranceOfSameCalls } = measured;
  const counters = rounded(measured.counters);
  const isSameCalls = toleranceOfSameCalls !== undefined && counters[CALLS] === committed[CALLS];
  const tolerances: Counters = {
    ...measured.tolerances,
    ...(isSameCalls && { [COMMANDS]: toleranceOfSameCalls }),
  };
  const isElsewhere = isOfServer && server !== committedServer;
  const faults: string[] = [];
  for (const name of new Set([...Object.keys(committed), ...Object.keys(counters)])) {
    const was = committed[name];
    const is = counters[name];
    const said = `${name}: committed ${was ?? 'nothing'}, measured ${is ?? 'nothing'}`;
    if (was === undefined || is === undefined) faults.push(said);
    else if (isElsewhere) {
      if (is > was * OTHER_SERVER) faults.push(`${said} on ${server}, more than servers differ by`);
    } else if (Math.abs(is - was) > was * (tolerances[name] ?? TOLERANCE) + (measured.spares?.[name] ?? 0))
      faults.push(said + direction(was, is));
  }
  return faults;
}

function direction(was: number, is: number): string {
  const share = was === 0 ? '' : ` by ${((Math.abs(is - was) / was) * 100).toFixed(1)} %`;
  return is > was ? `, MORE${share}: a regression` : `, less${share}: a gain to be kept`;
}

function failure(what: string, faults: readonly string[], detail: string | undefined): string {
  return [
    `${what}: the counters are not those of test/counters/counters.json.`,
    ...faults.map((fault) => `  ${fault}`),
    ...(detail === undefined ? [] : [`  Measured: ${detail}`]),
    'More: take away what your change has added. Less, or worth its price: commit the new values with the change, by',
    `  ${UPDATE}`,
  ].join('\n');
}

function rounded(counters: Counters): Counters {
  return Object.fromEntries(
    Object.entries(counters).map(([name, value]) => [name, Number(value.toPrecision(DIGITS))]),
  );
}
