import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-node';
import { expect, it } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import { otel } from '#lib/subpaths/otel.js';
import { QueueProbes, QueueProbesModule } from '#lib/subpaths/probes.js';
import { QueueMetricsModule } from '#lib/subpaths/prometheus.js';
import { freePort } from '../../tools/free-port.mjs';
import { prometheus } from '../../tools/promtool.mjs';
import { atEnd, temporaryFolder } from '../support/cleanup.js';
import { bootQueue, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { ROOT } from '../support/sources.js';
import { until } from '../support/wait.js';

/** How many times Prometheus scrapes each process, once a second. `npm run test:prometheus` takes a minute, and needs Prometheus. */
const FULL = process.env['GODWIT_PROMETHEUS_SCRAPES'];
const SCRAPES = Number(FULL ?? 8);
const MISSING =
  'There is no Prometheus on PATH, and it could not be installed: apt-get install prometheus, brew install prometheus';
const PATIENT = { timeout: 30_000 + SCRAPES * 2_000 };

// The form of a minute lasts until the first upkeep.
const redis = useRedis();

it(
  'a real Prometheus scrapes two processes, and answers every query of the dashboard and the alerts',
  async ({ skip }) => {
    const program = prometheus();
    if (program === undefined && FULL === undefined) return skip(MISSING);
    if (program === undefined) throw new Error(MISSING);
    const server = await startPrometheus(program, [await startWorker(), await startProducer()]);
    await until(
      async () => (await server.query(`min(sum_over_time(up[10m])) >= ${SCRAPES}`)).length > 0,
      PATIENT,
    );

    const { activeTargets } = await server.get('targets');
    expect(activeTargets.map(({ health, lastError }: Target) => [health, lastError])).toEqual([
      ['up', ''],
      ['up', ''],
    ]);
    // On a loaded machine, an answer may come after the second that Prometheus waits.
    expect(await server.number('min(avg_over_time(up{job="app"}[10m]))')).toBeGreaterThan(0.7);
    expect(await server.number('min(min_over_time(godwit_collect_success[10m]))')).toBe(1);
    expect(await server.faults()).toEqual([]);

    // After a scrape that took longer than a second, Prometheus answers nothing until the next one.
    let empty = dashboardQueries();
    await until(
      async () => {
        const answers = await Promise.all(empty.map(([, expression]) => server.query(expression)));
        empty = empty.filter((_, i) => answers[i]!.length === 0);
        return empty.length === 0;
      },
      { ...PATIENT, what: () => `answers for ${empty.map(([title]) => title).join(', ')}` },
    );
    for (const [series, label, values] of dashboardVariables()) {
      const there = await server.get(`label/${label}/values?match[]=${encodeURIComponent(series)}`);
      expect([label, there.toSorted()]).toEqual([label, values]);
    }

    expect(await server.number('sum(rate(godwit_runs_total{outcome="completed"}[5s]))')).toBeGreaterThan(0);
    expect(await server.number('sum(rate(godwit_jobs_added_total{result="added"}[5s]))')).toBeGreaterThan(0);
    expect(
      await server.number('sum(rate(godwit_jobs_dead_total{reason="unrecoverable"}[5s]))'),
    ).toBeGreaterThan(0);
    const p95 = 'histogram_quantile(0.95, sum by (le) (rate(godwit_run_duration_seconds_bucket[5s])))';
    expect(await server.number(p95)).toBeGreaterThan(0);

    const exemplars = await server.get(
      'query_exemplars?query=godwit_run_duration_seconds_bucket&start=0&end=4102444800',
    );
    expect(exemplars.length).toBeGreaterThan(0);
    for (const { labels } of exemplars.flatMap((one: { exemplars: { labels: object }[] }) => one.exemplars))
      expect(labels).toEqual({ trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) });

    const { groups } = await server.get('rules');
    const rules = groups.flatMap((group: { rules: Rule[] }) => group.rules) as Rule[];
    expect(rules).toHaveLength(12);
    expect(rules.filter(({ health, lastError }) => health !== 'ok' || lastError)).toEqual([]);
    // Five of six runs fail, and a job dies with each tick. Both rules wait ten minutes before they fire.
    const pending = rules.filter(({ state }) => state === 'pending').map(({ name }) => name);
    // A busy machine blocks event loops too.
    expect(pending.filter((name) => name !== 'GodwitEventLoopBlocked')).toEqual([
      'GodwitJobsDying',
      'GodwitFailureRatio',
    ]);
  },
  120_000 + SCRAPES * 2_000,
);

interface Target {
  readonly health: string;
  readonly lastError: string;
}

interface Rule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
  readonly state: string;
}

/** Starts an application that serves its metrics. Returns it and its address. */
async function serve(options: QueueAppOptions) {
  const app = await bootQueue(redis, {
    watch: false,
    ...options,
    imports: [
      QueueProbesModule.forRoot({ port: 0, host: '127.0.0.1' }),
      QueueMetricsModule.forRoot({ path: false }),
    ],
  });
  return { app, target: `127.0.0.1:${app.get(QueueProbes).port}` };
}

async function startWorker(): Promise<string> {
  const { app, target } = await serve({
    root: { telemetry: otel({ tracerProvider: new BasicTracerProvider(), meterProvider: false }) },
    queue: {
      defaults: { attempts: 5, backoff: 1 },
      limits: {
        rate: { max: 10_000, per: '1s' },
        names: { flaky: { breaker: { failures: 1e6 }, retryBudget: { max: 1e6, per: '1s' } } },
      },
    },
    handlers: {
      ok: () => new Promise((resolve) => setImmediate(resolve)),
      flaky: (job) => {
        if (job.attempt < 5) throw new Error('not yet');
      },
      bad: () => {
        throw new UnrecoverableError('never');
      },
    },
  });
  // A group that rests, for its panel.
  await app.queue.group('resting').set({ rate: { max: 1, per: '1h' } });
  await app.queue.addBulk([1, 2].map((data) => ({ name: 'ok', data, options: { group: 'resting' } })));
  await app.queue.schedules.upsert('often', { every: '1s' }, { name: 'ok' });
  return target;
}

/** A process that adds a job of each kind 20 times a second. */
async function startProducer(): Promise<string> {
  const { app, target } = await serve({});
  const failures: unknown[] = [];
  const tick = () =>
    void app.queue
      .addBulk(['ok', 'flaky', 'bad'].map((name) => ({ name, data: null, options: { group: name } })))
      .catch((error: unknown) => failures.push(error));
  const timer = setInterval(tick, 50);
  atEnd(() => {
    clearInterval(timer);
    expect(failures).toEqual([]);
  });
  return target;
}

async function startPrometheus(program: string, targets: readonly string[]) {
  const folder = temporaryFolder();
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [join(ROOT, 'grafana/alerts.yml')],
    scrape_configs: [{ job_name: 'app', static_configs: [{ targets }] }],
  };
  // JSON is YAML.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    program,
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--enable-feature=exemplar-storage',
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const exited = once(child, 'exit');
  atEnd(async () => {
    child.kill();
    await exited;
  });
  const ask = async (path: string) => (await fetch(`http://${address}/${path}`)).text();
  await until(async () => (await ask('-/ready')).includes('Ready'), {
    ...PATIENT,
    what: () => `Prometheus: ${log}`,
  });

  const get = async (path: string): Promise<any> => {
    const { status, error, data } = JSON.parse(await ask(`api/v1/${path}`));
    expect([path, status, error]).toEqual([path, 'success', undefined]);
    return data;
  };
  const query = async (expression: string): Promise<{ value: [number, string] }[]> =>
    (await get(`query?query=${encodeURIComponent(expression)}`)).result;
  return {
    get,
    query,
    /** The only value of an expression. */
    number: async (expression: string) => Number((await query(expression))[0]?.value[1]),
    /** What Prometheus refused of the scraped samples and exemplars, by its own counters and its log. */
    faults: async () => {
      const own = (await ask('metrics')).split('\n');
      const refused =
        /^prometheus_target_(scrapes_(sample|exemplar|exceeded)\w*|sync_failed)_total|^prometheus_tsdb_exemplar_out_of_order/;
      const counters = own.filter((line) => refused.test(line));
      expect(counters.length).toBeGreaterThan(3);
      return [...counters.filter((line) => !line.endsWith(' 0')), ...log.split('\n').filter(Boolean)];
    },
  };
}

const dashboard = JSON.parse(readFileSync(join(ROOT, 'grafana/godwit.json'), 'utf8'));

/** Title and expression of each query, with the variables as Grafana fills them in. */
function dashboardQueries(): [string, string][] {
  const panels = (dashboard.panels as Panel[]).flatMap((panel) => [panel, ...(panel.panels ?? [])]);
  const queries = panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }): [string, string] => [title, withAll(expr).replaceAll('$__rate_interval', '5s')]),
  );
  expect(queries.length).toBeGreaterThan(25);
  expect(queries.filter(([, expression]) => expression.includes('$'))).toEqual([]);
  return queries;
}

/** Fills in the variables as Grafana does for "All". */
function withAll(text: string): string {
  return text.replace(/\$(job|queue|name)\b/g, '.*');
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
  readonly panels?: readonly Panel[];
}

/** The series and label that fill each variable, and its values in this test. */
function dashboardVariables(): [string, string, string[]][] {
  const values: Record<string, string[]> = { job: ['app'], queue: ['work'], name: ['bad', 'flaky', 'ok'] };
  const found = (dashboard.templating.list as { type: string; definition?: string }[]).flatMap(
    ({ type, definition }): [string, string, string[]][] => {
      const [, series, label] = /^label_values\((.+), (\w+)\)$/.exec(definition ?? '') ?? [];
      return type === 'query' ? [[withAll(series!), label!, values[label!]!]] : [];
    },
  );
  expect(found.map(([, label]) => label)).toEqual(Object.keys(values));
  return found;
}
