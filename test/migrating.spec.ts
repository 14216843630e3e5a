import { Inject, Module, Scope } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileFunction } from 'node:vm';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import * as godwit from '#lib/index.js';
import type { Job } from '#lib/job/job.js';
import { checkJobOptions } from '#lib/options/job-options.js';
import { resolveModuleOptions } from '#lib/options/module-options.js';
import { otel } from '#lib/subpaths/otel.js';
import { checkProcessorOptions } from '#lib/options/worker-options.js';
import { asFunction, compile, tableCodeOf, tableSource, type TableCode } from './support/page-code.js';
import { bootQueue, PATIENT, processorOf } from './support/queue-app.js';
import { useRedis } from './support/redis.js';
import { ROOT } from './support/sources.js';
import { latch, within } from './support/wait.js';

const PAGE = 'docs/guides/migrating-from-bullmq.md';
const SHELL = /^npm /;

/** The names that the page declares for the code of its tables. */
const PRELUDE = `
import { Inject, Injectable, Module, Scope } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import {
  Handle, HandleBatch, InjectQueue, JOB_REF, OnJob, OnQueueEvent, Processor, QueueModule, RateLimited, Schedule, Snooze, UnrecoverableError, getQueueToken,
} from 'godwit';
import { otel } from 'godwit/otel';
import type {
  EventOf, Job, JobBatch, JobEventOf, JobOptions, ProcessorOptions, Queue, QueueEvents, QueueInspector, QueueModuleOptions, QueueModuleOptionsFactory,
  QueueProducer, QueueRuntime,
} from 'godwit';
declare const queue: Queue;
declare const job: Job;
declare const producer: QueueProducer;
declare const events: QueueEvents;
declare const runtime: QueueRuntime;
declare const inspector: QueueInspector;
declare const id: string;
declare const data: { file: string };
declare class ConfigService { get(name: string): string; }
declare class ConfigModule {}
declare class QueueConfig implements QueueModuleOptionsFactory { createQueueModuleOptions(): QueueModuleOptions; }
`;

const codes = tableCodeOf(PAGE).filter(({ code }) => !SHELL.test(code));

describe('the page for those who come from @nestjs/bullmq', () => {
  // Its blocks are compiled with those of the other pages, in docs/pages.spec.ts.
  it('has only code that compiles in its tables', { timeout: 120_000 }, () => {
    expect(codes.length).toBeGreaterThan(120);
    // Code that does not compile is reported with its place; otherwise this would prove nothing.
    const of = (code: string, type: string | null = null): TableCode => ({
      page: 'X.md',
      line: 7,
      type,
      code,
    });
    const broken = [
      of('await queue.add(7, data)'),
      of('{ delai: 1 }', 'JobOptions'),
      of('@Handle(7) run(job: Job) {}'),
    ];
    const faults = compile([tableSource([...codes, ...broken], PRELUDE)], '.tmp/migrating');
    const expected = broken.map(({ code }) => expect.stringContaining(`X.md:7 (${code}) `));
    expect(faults).toEqual(expected);
  });

  it('installs what the package says it needs', () => {
    const { peerDependencies, peerDependenciesMeta: meta } = JSON.parse(
      readFileSync(join(ROOT, 'package.json'), 'utf8'),
    ) as {
      peerDependencies: Record<string, string>;
      peerDependenciesMeta: Record<string, { optional?: boolean }>;
    };
    const needed = Object.keys(peerDependencies).filter((name) => !meta[name]?.optional);
    const [install] = tableCodeOf(PAGE).filter(({ code }) => SHELL.test(code));
    const asked = install!.code.split(' ').slice(2);
    // Every application of Nest has the others.
    const ofNest = needed.filter((name) => /^(@nestjs\/|reflect-metadata$|rxjs$)/.test(name));
    expect([...asked, ...ofNest].toSorted()).toEqual(['godwit', ...needed].toSorted());
  });

  it('names only options that are accepted', () => {
    const check: Record<string, (value: any) => unknown> = {
      JobOptions: (value) => checkJobOptions(value, 'add()'),
      ProcessorOptions: (value) => checkProcessorOptions(value, '@Processor()'),
      QueueModuleOptions: (value) => resolveModuleOptions(value),
    };
    const typed = codes.filter(({ type }) => type !== null);
    expect(typed.length).toBeGreaterThan(30);
    for (const { code, type } of typed) {
      const value: unknown = compileFunction(`return ${code};`, ['Redis', 'otel'])(Object, otel);
      expect(() => check[type!]!(value), code).not.toThrow();
    }
  });
});

describe('the lines of its tables', () => {
  const redis = useRedis();
  const isLast = ({ code }: TableCode) => code.includes('runtime.stop()');
  const lines = codes.filter(({ type, code }) => type === null && !code.startsWith('NestFactory'));

  /** The job of the example is not always in the state that a line is for. */
  const EXPECTED = ['GODWIT_JOB_NOT_FOUND', 'GODWIT_WRONG_STATE', 'GODWIT_SCHEDULE_NOT_FOUND'];

  it('do what they say, in an application on Redis', { timeout: 120_000 }, async () => {
    const given = latch<Job>();
    const ended = latch();
    const app = await bootQueue(redis, {
      queues: [{ name: 'audio' }, { name: 'films' }],
      handlers: {
        hold: async (job) => {
          given.open(job);
          await ended.promise;
        },
      },
      providers: [processorOf('audio', { transcode: () => ({ made: 'a.ogg' }) })],
    });
    await app.queue.add('hold', {});
    const job = await within(given.promise, PATIENT);
    const queue = app.queueOf('audio');
    const values: Record<string, unknown> = {
      ...godwit,
      Inject,
      Module,
      Scope,
      NestFactory,
      queue,
      job,
      producer: app.producer,
      events: app.events,
      runtime: app.runtime,
      inspector: app.get(godwit.QueueInspector),
      data: { file: 'a.mp3' },
      ConfigService: Object,
      ConfigModule: Object,
      QueueConfig: Object,
    };

    async function run(code: string): Promise<string | null> {
      // The line before may have paused it.
      await queue.resume();
      const { id } = await queue.add('later', {}, { delay: '1h' });
      const text = ts.transpile(asFunction({ code, type: null }, 'row'), {
        target: ts.ScriptTarget.ES2022,
        experimentalDecorators: true,
      });
      const row: unknown = compileFunction(`${text}; return row;`, [...Object.keys(values), 'id'])(
        ...Object.values(values),
        id,
      );
      try {
        await (row as () => unknown)();
        return code.startsWith('throw ') ? `${code}: did not throw` : null;
      } catch (error) {
        const { code: what = '', message } = error as { code?: string; message: string };
        return EXPECTED.includes(what) || code.startsWith('throw ') ? null : `${code}: ${message}`;
      }
    }

    const faults: (string | null)[] = [];
    for (const { code } of lines.filter((line) => !isLast(line))) faults.push(await run(code));
    ended.open();
    for (const { code } of lines.filter(isLast)) faults.push(await run(code));
    expect(faults.filter((fault) => fault !== null)).toEqual([]);
    expect(app.runtime.state).toBe('stopped');
  });
});
