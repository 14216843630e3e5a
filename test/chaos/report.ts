import type { Gauge } from './gauge.js';
import type { Nemesis } from './nemesis.js';
import type { Result } from './run.js';

const ROW_MS = 2_000;
/** How many broken promises are printed; the result has all of them. */
const SHOWN = 20;
const COLUMNS = [
  'time',
  'added',
  'completed',
  'waiting',
  'delayed',
  'active',
  'dead',
  'jobs/s',
  'redis',
  'worker',
];
const number = (value: number) => value.toLocaleString('en');
const mib = (bytes: number) => `${Math.round(bytes / 1_048_576)} M`;

/** Prints the progress of a run: a row every two seconds, with the faults since the row before. */
export class Table {
  private readonly timer: NodeJS.Timeout;
  private before = { at: 0, completed: 0 };

  constructor(
    private readonly gauge: Gauge,
    private readonly nemesis: Nemesis,
  ) {
    write([...COLUMNS, '  what was done']);
    this.timer = setInterval(() => this.row(), ROW_MS);
  }

  end(): void {
    clearInterval(this.timer);
    this.row();
  }

  private row(): void {
    const { now, elapsed } = this.gauge;
    if (!now) return;
    const speed = (now.completed - this.before.completed) / Math.max(0.1, elapsed - this.before.at);
    this.before = { at: elapsed, completed: now.completed };
    const { added, completed, waiting, delayed, active, dead } = now;
    const figures = [added, completed, waiting, delayed, active, dead, Math.round(speed)].map(number);
    const news = this.nemesis.news.splice(0);
    if (this.gauge.isBlind) news.unshift('(redis does not answer)');
    write([clock(elapsed), ...figures, mib(now.redisBytes), mib(now.workerRss), `  ${news.join('; ')}`]);
  }
}

function write(cells: readonly string[]): void {
  const text = cells
    .map((cell, i) => (i === cells.length - 1 ? cell : cell.padStart(i === 0 ? 6 : 10)))
    .join('');
  process.stdout.write(`${text}\n`);
}

function clock(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
}

/** Prints the figures of a run in one line, then each broken promise in a line. */
export function verdict(result: Result): string {
  const { account, mixed, violations, options, acts, ledgers, slopes, seconds, keysLeft } = result;
  const { dead } = account;
  const reasons = Object.entries(dead).map(([reason, count]) => `${reason} ${number(count)}`);
  const deaths = Object.values(dead).reduce((sum, count) => sum + count, 0);
  const { recoveries } = account;
  const figures = [
    `added ${number(account.added)}`,
    `completed ${number(account.completed)}`,
    `dead ${number(deaths)}${reasons.length > 0 ? ` (${reasons.join(', ')})` : ''}`,
    `lost ${number(account.lost)}`,
    `phantom ${number(account.phantom)}`,
    `double-settled ${number(account.doubleSettled)}`,
    `re-run ${number(account.reruns)} of at most ${number(account.rerunBound)}`,
    `false recoveries ${number(account.falseRecoveries)}`,
    `longest recovery ${(account.longestRecovery / 1000).toFixed(1)} s (suspects ${(account.longestOfSuspects / 1000).toFixed(1)} s)`,
    `seed ${options.seed}`,
    violations.length === 0 ? 'all promises kept' : `${violations.length} BROKEN`,
  ];
  const done = Object.entries(acts).filter(([, count]) => count > 0);
  return [
    '',
    `faults: ${done.map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none'}`,
    `adds of unknown outcome: ${account.unknownApplied} applied, ${account.unknownNotApplied} not; stale settlements refused: ${account.staleRefused}; ` +
      `taken back from workers that were dead ${recoveries.dead}, paused ${recoveries.paused}, cut off ${recoveries.cutOff}; harmless jobs that lost more than five workers: ${account.unlucky}`,
    `${number(Math.round(account.completed / seconds))} jobs/s over ${seconds} s; per minute: keys ${number(slopes.keys)}, redis ${number(slopes.redisBytes)} B, ` +
      `largest worker ${number(slopes.workerRss)} B; keys left: ${keysLeft.length}`,
    `mixed features: ${number(mixed.calls)} calls on ${number(mixed.ids)} ids, ${number(mixed.runs)} runs, ${number(mixed.indeterminate)} calls without an answer; ` +
      `ids that Redis may have forgotten: ${number(mixed.excused)}, forgotten: ${number(mixed.forgotten)}`,
    ...violations.slice(0, SHOWN).map((text) => `BROKEN: ${text}`),
    ...(violations.length > SHOWN ? [`and ${violations.length - SHOWN} more`] : []),
    ...(ledgers ? [`ledgers: ${ledgers}`] : []),
    figures.join(' · '),
    '',
  ].join('\n');
}
