import { brief } from '../report/words.js';
import type { Result, Row } from '../report/result.js';
import { find, timesAsGood } from './comparison.js';

/** One line of a table. */
interface Line {
  readonly title: string;
  readonly scenario: string;
  readonly key: string;
  /** Follows the first one, after a slash. */
  readonly and?: string;
  readonly unit?: string;
}

export const LINES: readonly Line[] = [
  { title: 'consume no-op jobs, concurrency 100, jobs/s', scenario: 'consume', key: 'perSecond' },
  { title: 'add in bulk, 1,000 jobs a call, jobs/s', scenario: 'add-bulk', key: 'perSecond' },
  { title: 'add, 100 calls in flight, jobs/s', scenario: 'add-in-flight', key: 'perSecond' },
  { title: 'CPU of Redis per consumed job', scenario: 'consume', key: 'redisCpu', unit: 'µs' },
  { title: 'CPU of the worker per job', scenario: 'consume', key: 'processCpu', unit: 'µs' },
  { title: 'Redis commands per job, including those in scripts', scenario: 'consume', key: 'commands' },
  {
    title: 'idle worker, from `add` to the handler, p50 / p99',
    scenario: 'pick-up',
    key: 'p50',
    and: 'p99',
    unit: 'ms',
  },
  {
    title: 'memory of Redis per waiting job, with retries',
    scenario: 'waiting-memory',
    key: 'retrying',
    unit: 'B',
  },
  { title: 'connections with 100 queues and 100 processors', scenario: 'connections', key: 'many' },
];

/** The table of limits and groups. */
export const LIMIT_LINES: readonly Line[] = [
  { title: '10,000 groups, one job of a group at a time, jobs/s', scenario: 'groups', key: 'perSecond' },
  { title: 'CPU of Redis per job of these groups', scenario: 'groups', key: 'redisCpu', unit: 'µs' },
  {
    title: 'one large and 999 small groups: largest difference of turns',
    scenario: 'fair',
    key: 'widest',
  },
  { title: 'starts until all 1,000 groups were served', scenario: 'fair', key: 'untilAll' },
  ...limitLines(1),
  ...limitLines(8),
];

function limitLines(count: number): Line[] {
  const [scenario, workers] = [`rate-${count}`, count === 1 ? '1 process' : `${count} processes`];
  return [
    {
      title: `rate of 1,000/s, ${workers}: fewest / most starts in any second`,
      scenario,
      key: 'smallest',
      and: 'largest',
    },
    { title: `share of this rate that is used, ${workers}`, scenario, key: 'used', unit: '%' },
    { title: `CPU of Redis per job under this rate, ${workers}`, scenario, key: 'redisCpu', unit: 'µs' },
  ];
}

/** How much of a table a run can fill. */
export function linesFrom(rows: Result['rows'], lines: readonly Line[]): number {
  return lines.filter(({ scenario, key }) => find(rows, scenario, key) !== undefined).length;
}

/** The figures as Markdown, a column per system; after those of peers, how many times better the project is. */
export function figuresTable(
  { rows, terms }: Pick<Result, 'rows' | 'terms'>,
  own: string,
  shown = LINES,
): string {
  const peers = Object.keys(terms).filter((name) => name !== own);
  const lines = shown.flatMap((line) => {
    const row = find(rows, line.scenario, line.key);
    if (row?.contenders[own] === undefined) return [];
    const and = line.and === undefined ? undefined : find(rows, line.scenario, line.and);
    const times = timesAsGood(row, own);
    const cells = [own, ...peers].map((name) => {
      const values = [row, ...(and ? [and] : [])].flatMap((r) => r.contenders[name]?.median ?? []);
      if (values.length === 0) return '–';
      const text = `${values.map(brief).join(' / ')}${line.unit ? ` ${line.unit}` : ''}`;
      return times[name] === undefined ? text : `${text} (${ratio(times[name])})`;
    });
    return [`| ${[line.title, ...cells].join(' | ')} |`];
  });
  return [`| | ${[own, ...peers].join(' | ')} |`, `|---${'|---'.repeat(1 + peers.length)}|`, ...lines].join(
    '\n',
  );
}

/** They describe the conditions of a measurement, or count calls that some contenders do not make. */
const NO_CONTEST = new Set(['lag', 'ping', 'proxy', 'scriptCalls']);
/** Smaller differences are noise. */
const CLEAR = 0.95;

/** Every figure in which a peer is clearly ahead, as Markdown. */
export function behindTable(rows: readonly Row[], own: string): string {
  const lines = rows
    .filter(({ key }) => !NO_CONTEST.has(key))
    .flatMap((row) => {
      const ahead = Object.entries(timesAsGood(row, own)).filter(([, times]) => times < CLEAR);
      if (ahead.length === 0) return [];
      const show = (name: string) => withUnit(brief(row.contenders[name]!.median), row.unit);
      const others = ahead.map(([name, times]) => `${name} ${show(name)} (${ratio(times)})`).join(', ');
      return [`| ${[row.scenarioTitle, row.title, show(own), others].join(' | ')} |`];
    });
  return [`| Scenario | Figure | ${own} | Ahead |`, '|---|---|---|---|', ...lines].join('\n');
}

function withUnit(value: string, unit: string): string {
  return unit === '' ? value : `${value} ${unit}`;
}

/** Machine, versions and number of rounds, in one sentence. */
export function sourceLine({
  surroundings,
  rounds,
  jobs,
  startedAt,
}: Omit<Result, 'rows' | 'terms' | 'samples'>): string {
  const { machine, node, redis, packages, commit } = surroundings;
  const versions = Object.entries(packages)
    .filter(([name]) => name !== 'godwit')
    .map(([name, version]) => `${name} ${version}`);
  return [
    `Medians of ${rounds} ${rounds === 1 ? 'round' : 'rounds'} of ${jobs.toLocaleString('en')} jobs, ${startedAt.slice(0, 10)}, commit ${commit};`,
    `${machine.cpu}, ${machine.cores} cores; Redis ${redis.version}, Node ${node.replace(/^v/, '')}, ${versions.join(', ')}.`,
  ].join('\n');
}

/** Replaces the text between two markers. Throws if the page has no such markers. */
export function fillMarked(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from)
    throw new Error(`the page has no lines '${begin}' and '${end}' in this order`);
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`;
}

/** Two digits; below 0.1 one, so that a small ratio is never shown as 0. */
function ratio(times: number): string {
  return `${digits(times)} ×`;
}

function digits(times: number): string {
  if (times >= 9.95) return Math.round(times).toLocaleString('en');
  return times < 0.1 ? String(Number(times.toPrecision(1))) : times.toFixed(1);
}

/** The figures of the summary, most important first. */
const SUMMARY: readonly (Pick<Line, 'scenario' | 'key'> & { readonly words: (times: string) => string })[] = [
  { scenario: 'consume', key: 'perSecond', words: (times) => `consumes ${times} × as many jobs per second` },
  { scenario: 'add-bulk', key: 'perSecond', words: (times) => `adds ${times} × as many in bulk` },
  {
    scenario: 'add-in-flight',
    key: 'perSecond',
    words: (times) => `adds ${times} × as many with 100 calls in flight`,
  },
  { scenario: 'consume', key: 'redisCpu', words: (times) => `needs 1/${times} of the Redis CPU per job` },
  {
    scenario: 'waiting-memory',
    key: 'retrying',
    words: (times) => `needs 1/${times} of the Redis memory per waiting job`,
  },
];

/** One sentence against one peer; empty if the run compares nothing with it. */
export function summary(
  { rows, surroundings }: Pick<Result, 'rows' | 'surroundings'>,
  own: string,
  peer: string,
): string {
  const parts = SUMMARY.flatMap(({ scenario, key, words }) => {
    const row = find(rows, scenario, key);
    const times = row && timesAsGood(row, own)[peer];
    return times === undefined ? [] : [words(digits(times))];
  });
  if (parts.length === 0) return '';
  const version = surroundings.packages[peer];
  return `Compared with \`${peer}\`${version === undefined ? '' : ` ${version}`}, Godwit ${new Intl.ListFormat('en').format(parts)}.`;
}
