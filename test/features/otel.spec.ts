import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Injectable } from '@nestjs/common';
import { context, createContextKey, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  AlwaysOffSampler,
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-node';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Snooze, UnrecoverableError, type Job, type JobEvent, type QueueTelemetry } from '#lib/index.js';
import { otel } from '#lib/subpaths/otel.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { ROOT } from '../support/sources.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
const tracer = trace.getTracer('application');
afterAll(() => provider.shutdown());
beforeEach(() => exporter.reset());

const boot = (options: QueueAppOptions, telemetry: QueueTelemetry = otel()) =>
  bootQueue(redis, { ...options, root: { telemetry, ...options.root } });

const spans = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
const spansOf = (name: string, count: number) =>
  until(() => (spans(name).length >= count ? spans(name) : undefined), {
    ...PATIENT,
    what: () => `${count} spans ${name}`,
  });
const compare = (a: string, b: string) => a.localeCompare(b);
const traceOf = (span: ReadableSpan) => span.spanContext().traceId;
const idOf = (span: ReadableSpan) => span.spanContext().spanId;
const inSpan = <T>(name: string, work: () => Promise<T>): Promise<T> =>
  tracer.startActiveSpan(name, async (span) => {
    try {
      return await work();
    } finally {
      span.end();
    }
  });

describe('a job that is added inside a span', () => {
  it('is a child of it, and its run a trace of its own with a link to the add', async () => {
    const handlers = { welcome: () => inSpan('mail', async () => 'sent') };
    const { queue } = await boot({ handlers });
    await inSpan('request', () => queue.add('welcome', 1, { id: 'one' }));
    const [run] = await spansOf('process work', 1);
    const [add] = spans('add work');
    const [request] = spans('request');
    expect([traceOf(add!), add!.parentSpanContext?.spanId]).toEqual([traceOf(request!), idOf(request!)]);
    expect(add!.kind).toBe(SpanKind.PRODUCER);
    expect(add!.attributes).toEqual({
      'messaging.system': 'godwit',
      'messaging.system.name': 'godwit',
      'messaging.destination.name': 'work',
      'messaging.operation.name': 'add',
      'messaging.operation.type': 'send',
      'messaging.message.id': 'one',
      'godwit.job.name': 'welcome',
    });
    expect(run!.kind).toBe(SpanKind.CONSUMER);
    expect(traceOf(run!)).not.toBe(traceOf(add!));
    expect(run!.parentSpanContext).toBeUndefined();
    expect(run!.links.map(({ context }) => [context.traceId, context.spanId])).toEqual([
      [traceOf(add!), idOf(add!)],
    ]);
    expect(run!.attributes).toMatchObject({
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.message.id': 'one',
      'messaging.client.id': expect.any(String),
      'godwit.job.name': 'welcome',
      'godwit.job.attempt': 1,
      'godwit.job.attempts': 3,
      'godwit.job.wait_ms': expect.any(Number),
      'godwit.job.outcome': 'completed',
    });
    expect(run!.status.code).toBe(SpanStatusCode.UNSET);
    expect(spans('mail').map((mail) => [traceOf(mail), mail.parentSpanContext?.spanId])).toEqual([
      [traceOf(run!), idOf(run!)],
    ]);
  });

  it('has one link for each attempt; failures are errors, a snooze is none', async () => {
    const handlers = {
      '*': ({ attempt }: Job) => {
        if (attempt === 1 && spans('process work').length === 0) throw new Snooze('100ms');
        throw attempt === 1 ? new TypeError('once more') : new UnrecoverableError('enough');
      },
    };
    const { queue } = await boot({ handlers });
    await queue.add('job', 1, { backoff: '1ms' });
    const runs = await spansOf('process work', 3);
    const [add] = spans('add work');
    expect(
      runs.map(({ attributes, status }) => [
        attributes['godwit.job.outcome'],
        attributes['error.type'],
        status.code,
        status.message,
      ]),
    ).toEqual([
      ['snoozed', undefined, SpanStatusCode.UNSET, undefined],
      ['retrying', 'TypeError', SpanStatusCode.ERROR, 'once more'],
      ['dead', 'UnrecoverableError', SpanStatusCode.ERROR, 'enough'],
    ]);
    expect(runs[2]!.attributes['godwit.dead.reason']).toBe('unrecoverable');
    expect(
      runs.map(({ events }) => events.map(({ attributes }) => attributes?.['exception.message'])),
    ).toEqual([[], ['once more'], ['enough']]);
    for (const run of runs) expect(run.links.map(({ context }) => context.spanId)).toEqual([idOf(add!)]);
  });

  it('is in the same trace with relation "parent", by a function for each run, and if the caller waits', async () => {
    const relation = ({ name }: { readonly name: string }) => (name === 'child' ? 'parent' : 'link');
    const { queue } = await boot({ handlers: { '*': () => 1 } }, otel({ relation }));
    await inSpan('request', async () => {
      await queue.add('child', 1);
      await queue.add('linked', 1);
      await queue.addAndWait('waited', 1);
    });
    const runs = await spansOf('process work', 3);
    const request = spans('request')[0]!;
    const inTrace = runs.filter((run) => traceOf(run) === traceOf(request));
    expect(inTrace.map(({ attributes }) => String(attributes['godwit.job.name'])).toSorted(compare)).toEqual([
      'child',
      'waited',
    ]);
    expect(inTrace.every(({ links }) => links.length === 0)).toBe(true);
  });

  it('records that it is a duplicate, and the error of its add', async () => {
    const { queue } = await boot({});
    await queue.add('job', 1, { id: 'a' });
    await queue.add('job', 1, { id: 'a' });
    await expect(queue.add('job', () => 1)).rejects.toThrow('function');
    expect(
      spans('add work').map(({ attributes, status }) => [
        attributes['godwit.job.duplicate'],
        attributes['error.type'],
        status.code,
      ]),
    ).toEqual([
      [undefined, undefined, SpanStatusCode.UNSET],
      [true, undefined, SpanStatusCode.UNSET],
      [undefined, 'GODWIT_INVALID_PAYLOAD', SpanStatusCode.ERROR],
    ]);
  });

  it('of a bulk shares one span, or has one of its own', async () => {
    const { queue } = await boot({ handlers: { '*': () => 1 } });
    const three = [1, 2, 3].map((data) => ({ name: 'job', data }));
    await queue.addBulk(three);
    const linked = await spansOf('process work', 3);
    const [add] = spans('add work');
    expect(add!.attributes['messaging.batch.message_count']).toBe(3);
    expect(new Set(linked.map(({ links }) => links[0]!.context.spanId))).toEqual(new Set([idOf(add!)]));
    exporter.reset();
    const each = await boot({ watch: false }, otel({ createSpans: true }));
    await each.queue.addBulk(three);
    const runs = await spansOf('process work', 3);
    const created = spans('create work');
    expect(created).toHaveLength(3);
    expect(runs.map(({ links }) => links[0]!.context.spanId).toSorted(compare)).toEqual(
      created.map(idOf).toSorted(compare),
    );
    expect(
      created.every(({ parentSpanContext }) => parentSpanContext?.spanId === idOf(spans('add work')[0]!)),
    ).toBe(true);
  });
});

it('jobs of schedules are traces of their own, without a link', async () => {
  const { queue } = await boot({ handlers: { '*': () => 1 } });
  await inSpan('request', () =>
    queue.schedules.upsert('tick', { every: '1h', immediately: true }, { name: 'job' }),
  );
  const [run] = await spansOf('process work', 1);
  expect([run!.links, run!.parentSpanContext]).toEqual([[], undefined]);
});

it('listeners of the end of a run are in its trace', async () => {
  @Injectable()
  @Processor('work')
  class Listening {
    @OnJob('completed')
    completed(_: JobEvent) {
      return inSpan('heard', async () => undefined);
    }
  }
  const { queue } = await boot({ handlers: { '*': () => 1 }, providers: [Listening] });
  await queue.add('job', 1);
  const [heard] = await spansOf('heard', 1);
  expect(heard!.parentSpanContext?.spanId).toBe(idOf(spans('process work')[0]!));
});

describe('with a ratio', () => {
  it('a run that is not chosen has no span, and neither has what its handler calls, here or elsewhere', async () => {
    const carried: Record<string, string>[] = [];
    const handler = async () => {
      for (const name of ['first', 'second']) {
        await inSpan(name, async () => {
          const headers: Record<string, string> = {};
          propagation.inject(context.active(), headers);
          carried.push(headers);
        });
      }
      const key = createContextKey('own');
      return context.with(context.active().setValue(key, 1).deleteValue(key), () =>
        trace.getActiveSpan()!.isRecording(),
      );
    };
    const { queue } = await boot(
      { handlers: { '*': handler }, root: { events: { results: true } } },
      otel({ ratio: 0 }),
    );
    const baggage = propagation.createBaggage({ tenant: { value: 'acme' } });
    const options = { retention: { completed: '1m' } };
    expect(await queue.addAndWait('waits', 1, options)).toBe(true);
    const [child] = await spansOf('process work', 1);
    expect(traceOf(child!)).toBe(traceOf(spans('add work')[0]!));
    exporter.reset();
    carried.length = 0;
    for (const id of ['a', 'b'])
      await context.with(propagation.setBaggage(context.active(), baggage), () =>
        queue.add('job', 1, { id, ...options }),
      );
    const results = () => Promise.all(['a', 'b'].map(async (id) => (await queue.get(id))?.result));
    await until(async () => (await results()).every((one) => one === false), PATIENT);
    expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(['add work', 'add work']);
    const parents = carried.map(({ traceparent }) => /^00-(\w{32})-\w{16}-00$/.exec(traceparent!)?.[1]);
    expect(parents).toEqual([parents[0], parents[0], parents[2], parents[2]]);
    expect(parents[0]).not.toBe(parents[2]);
    expect(carried.every((headers) => headers['baggage'] === 'tenant=acme')).toBe(true);
  });

  it('a function decides for each run', async () => {
    const ratio = ({ name }: { name: string }) => (name === 'rare' ? 1 : 0);
    const { queue, said } = await boot({ handlers: { '*': () => 1 } }, otel({ ratio }));
    await queue.addBulk(['often', 'rare', 'often'].map((name) => ({ name, data: 1 })));
    await said.take(3, ({ type }) => type === 'completed', PATIENT);
    expect(spans('process work').map(({ attributes }) => attributes['godwit.job.name'])).toEqual(['rare']);
  });

  it('a function that throws stops no run, and is logged once', async () => {
    const fail = () => {
      throw new Error('no ratio');
    };
    const { queue, said, logs } = await boot(
      { handlers: { '*': () => 1 } },
      otel({ ratio: fail, relation: fail }),
    );
    await queue.addBulk([1, 2].map((data) => ({ name: 'a', data })));
    await said.take(2, ({ type }) => type === 'completed', PATIENT);
    expect(spans('process work')).toHaveLength(2);
    const lines = logs.lines.map((line) => line.text).filter((text) => text.includes('no ratio'));
    expect(lines.map((line) => /otel\(\)\.(\w+) threw/.exec(line)?.[1])).toEqual(['relation', 'ratio']);
  });

  it('is a share, or a function', () => {
    for (const ratio of [-0.1, 1.1, Number.NaN, '1', null])
      expect(() => otel({ ratio: ratio as number })).toThrow(
        /otel\(\)\.ratio.*a number from 0 to 1, or a function/,
      );
  });
});

describe('without being requested', () => {
  it('is not stored: a job has no header for a trace that is not sampled, but one for baggage', async () => {
    const off = new NodeTracerProvider({ sampler: new AlwaysOffSampler() });
    const { queue } = await boot({}, otel({ tracerProvider: off }));
    await queue.add('job', 1, { id: 'off' });
    expect((await queue.get('off'))!.headers).toEqual({});
    const parent = await boot({ watch: false }, otel({ tracerProvider: off, relation: 'parent' }));
    await parent.queue.add('job', 1, { id: 'parent' });
    expect(Object.keys((await queue.get('parent'))!.headers)).toEqual(['traceparent']);
    const baggage = propagation.createBaggage({ tenant: { value: 'acme' } });
    await context.with(propagation.setBaggage(context.active(), baggage), () =>
      queue.add('job', 1, { id: 'baggage' }),
    );
    expect((await queue.get('baggage'))!.headers).toMatchObject({ baggage: 'tenant=acme' });
  });

  it('has no span: neither a worker that started inside a span nor a command of Godwit is part of it', async () => {
    // As instrumentations of ioredis do it, also for commands without a parent.
    // oxlint-disable-next-line typescript/unbound-method -- it is called with its client
    const { sendCommand } = Redis.prototype;
    let sent = 0;
    Redis.prototype.sendCommand = function (this: Redis, ...args) {
      sent += 1;
      const span = tracer.startSpan(`redis ${args[0].name}`);
      try {
        return sendCommand.apply(this, args);
      } finally {
        span.end();
      }
    };
    atEnd(() => void (Redis.prototype.sendCommand = sendCommand));
    const { app, root } = await tracer.startActiveSpan('bootstrap', async (span) => ({
      app: await boot({ handlers: { '*': () => inSpan('handler', async () => 1) } }),
      root: span,
    }));
    await inSpan('request', async () => {
      await app.queue.add('job', 1);
      await app.queue.addBulk([{ name: 'job', data: 2 }]);
      await app.queue.counts();
    });
    await spansOf('process work', 2);
    // A worker that runs out of work ten times, and the events it writes.
    const before = sent;
    for (let round = 0; round < 10; round++) {
      await app.queue.add('job', round);
      await spansOf('process work', 3 + round);
    }
    root.end();
    expect(sent - before).toBeGreaterThan(10);
    const names = new Set(exporter.getFinishedSpans().map(({ name }) => name));
    expect(names).toEqual(new Set(['request', 'add work', 'process work', 'handler', 'bootstrap']));
    const ofBootstrap = exporter
      .getFinishedSpans()
      .filter((span) => traceOf(span) === root.spanContext().traceId);
    expect(ofBootstrap.map(({ name }) => name)).toEqual(['bootstrap']);
  });
});

it('metrics have the names of the conventions', async () => {
  const memory = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: memory, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const handlers = {
    good: () => 1,
    bad: () => {
      throw new UnrecoverableError('no');
    },
  };
  const { queue, said } = await boot({ handlers }, otel({ meterProvider, global: true }));
  await queue.addBulk([
    { name: 'good', data: 1 },
    { name: 'good', data: 2 },
  ]);
  await queue.add('bad', 1);
  await said.take(3, ({ type }) => type === 'completed' || type === 'dead', PATIENT);
  await reader.forceFlush();
  const found = memory
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  const points = (name: string) => found.find(({ descriptor }) => descriptor.name === name)!.dataPoints;
  const sum = (name: string) =>
    points(name).reduce(
      (all, { value }) => all + (typeof value === 'number' ? value : (value as { count: number }).count),
      0,
    );
  expect(
    found.find(({ descriptor }) => descriptor.name === 'messaging.process.duration')!.descriptor.unit,
  ).toBe('s');
  expect([
    sum('messaging.client.sent.messages'),
    sum('messaging.client.operation.duration'),
    sum('messaging.client.consumed.messages'),
    sum('messaging.process.duration'),
    sum('godwit.job.wait.duration'),
    sum('godwit.worker.slots'),
  ]).toEqual([3, 2, 3, 3, 3, 10]);
  const of = (name: string, attribute: string) =>
    Object.fromEntries(points(name).map(({ attributes, value }) => [attributes[attribute], value]));
  expect(of('godwit.job.outcomes', 'godwit.job.outcome')).toEqual({ completed: 2, dead: 1 });
  expect(of('godwit.queue.jobs', 'godwit.job.state')).toMatchObject({ waiting: 0, dead: 1 });
  expect(points('messaging.process.duration').map(({ attributes }) => attributes['error.type'])).toEqual([
    undefined,
    'UnrecoverableError',
  ]);
});

it('metrics have the first 200 names of jobs, and count the others without a name', async () => {
  const memory = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: memory, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const { queue, said } = await boot({ handlers: { 'n-*': () => 1 } }, otel({ meterProvider }));
  await queue.addBulk(Array.from({ length: 230 }, (_, at) => ({ name: `n-${at}`, data: null })));
  await said.take(230, ({ type }) => type === 'completed', PATIENT);
  await reader.forceFlush();
  const [exported] = memory.getMetrics();
  for (const metric of ['godwit.job.outcomes', 'messaging.process.duration']) {
    const found = exported!.scopeMetrics[0]!.metrics.find(({ descriptor }) => descriptor.name === metric)!;
    const unnamed = found.dataPoints.filter(({ attributes }) => attributes['godwit.job.name'] === undefined);
    const counts = unnamed.map(({ value }) =>
      typeof value === 'number' ? value : (value as { count: number }).count,
    );
    expect([metric, found.dataPoints.length, counts]).toEqual([metric, 201, [30]]);
  }
});

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
}

it('two processes report one linked trace to a receiver of OTLP over HTTP', async () => {
  const received: OtlpSpan[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    void text(request).then((body) => {
      const { resourceSpans } = JSON.parse(body);
      for (const { scopeSpans } of resourceSpans)
        for (const { spans: some } of scopeSpans) received.push(...some);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  }).listen(0, '127.0.0.1');
  atEnd(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
  const start = (role: string) => {
    const options = JSON.stringify({ role, connection: redis.url, prefix: redis.prefix, url });
    const child = fork(join(ROOT, 'test/features/otel-process.mjs'), [options], {
      cwd: ROOT,
      stdio: 'inherit',
    });
    atEnd(() => void child.kill('SIGKILL'));
    return child;
  };
  const worker = start('worker');
  await once(worker, 'message');
  await once(start('producer'), 'exit');
  const named = (name: string) => received.filter((span) => span.name === name);
  await until(() => named('process work').length === 3, PATIENT);
  worker.send('stop');
  await once(worker, 'exit');
  const [request] = named('GET /signup');
  const adds = named('add work');
  expect(adds.map(({ traceId, parentSpanId }) => [traceId, parentSpanId])).toEqual(
    adds.map(() => [request!.traceId, request!.spanId]),
  );
  const links = named('process work').flatMap(({ links: all = [] }) =>
    all.map(({ spanId, traceId }) => `${traceId} ${spanId}`),
  );
  const [one, bulk] = adds.map(({ traceId, spanId }) => `${traceId} ${spanId}`);
  expect(links.toSorted(compare)).toEqual([one!, bulk!, bulk!].toSorted(compare));
  const mail = named('send mail')[0]!;
  expect(named('process work').map(({ spanId }) => spanId)).toContain(mail.parentSpanId);
});
