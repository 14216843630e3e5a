import { type } from 'arktype';
import { of } from 'rxjs';
import * as v from 'valibot';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { HandleBatch } from '#lib/decorators/handle-batch.decorator.js';
import { Attempt, JobData, JobId, Signal } from '#lib/decorators/job-params.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { defineJob, type JobOf } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { createTestJob } from '#lib/subpaths/testing.js';
import type { JobBatch } from '#lib/worker/batches.js';

const welcome = defineJob('email', 'welcome', z.object({ to: z.string(), count: z.coerce.number() }));
const purge = defineJob<{ olderThan: string }>('email', 'purge');
const nothing = defineJob<null>('email', 'nothing');

const parsed = defineJob('email', 'parsed', v.object({ at: v.pipe(v.string(), v.transform(Number)) }));
const typed = defineJob('email', 'typed', type({ host: 'string', port: 'string.numeric.parse' }));
const render = defineJob('email', 'render', z.object({ url: z.string() })).returns<{ pdf: string }>();

@Processor(welcome, { concurrency: 5 })
export class Accepted {
  @Handle(welcome)
  exact(job: JobOf<typeof welcome>): number {
    return job.data.count;
  }
  @Handle(welcome)
  part(job: Job<{ to: string }>): string {
    return job.data.to;
  }
  @Handle(welcome)
  nothing(): void {}
  @Handle(purge)
  async untyped(job: Job): Promise<unknown> {
    return job.data;
  }
  @Handle(purge)
  data(@JobData() data: { olderThan: string }, @Signal() signal: AbortSignal): boolean {
    return signal.aborted && data.olderThan === '';
  }
  @Handle(nothing)
  noData(job: JobOf<typeof nothing>): null {
    return job.data;
  }
  @Handle('parameters')
  parameters(@JobId() id: string, @Attempt() attempt: number, @JobData('to') to: string): string {
    return `${id} ${attempt} ${to}`;
  }
  @Handle(parsed)
  output(job: Job<{ at: number }>): string {
    return job.data.at.toFixed();
  }
  @Handle(parsed)
  async both(job: JobOf<typeof parsed>): Promise<number> {
    await job.update({ at: String(job.data.at + 1) });
    return job.data.at;
  }
  @HandleBatch(parsed, { size: 2 })
  batch(jobs: JobOf<typeof parsed>[], batch: JobBatch<{ at: number }>) {
    for (const job of jobs) batch.complete(job, job.data.at);
  }
  @Handle(typed)
  alsoOutput(job: JobOf<typeof typed>): number {
    return job.data.port + job.data.host.length;
  }
  @Handle(render)
  returns(job: JobOf<typeof render>) {
    return { pdf: job.data.url };
  }
  @Handle(render)
  async promises() {
    return { pdf: '' };
  }
  @Handle(render)
  observes() {
    return of({ pdf: '' });
  }
  @Handle('any')
  named(job: Job<{ whatever: boolean }>): boolean {
    return job.data.whatever;
  }
  @Handle()
  rest(job: Job): string {
    return job.name;
  }
}

export class Refused {
  // @ts-expect-error the field has another type
  @Handle(welcome)
  otherType(job: Job<{ to: number }>): number {
    return job.data.to;
  }
  // @ts-expect-error the schema gives a number, not what the producer may have written
  @Handle(welcome)
  input(job: Job<{ to: string; count: string }>): string {
    return job.data.count;
  }
  // @ts-expect-error the schema makes a number of the text
  @Handle(parsed)
  text(job: Job<{ at: string }>): string {
    return job.data.at;
  }
  // @ts-expect-error the schema makes a number of the text
  @Handle(typed)
  alsoText(job: Job<{ host: string; port: string }>): string {
    return job.data.port;
  }
  // @ts-expect-error the definition says that it returns something else
  @Handle(render)
  returnsOther(job: JobOf<typeof render>) {
    return { html: job.data.url };
  }
  // @ts-expect-error the same of a promise
  @Handle(render)
  async promisesOther() {
    return { pdf: 1 };
  }
  // @ts-expect-error and of an Observable
  @Handle(render)
  observesOther() {
    return of({ pdf: 1 });
  }
  // @ts-expect-error the definition promises no such field
  @Handle(purge)
  more(job: Job<{ olderThan: string; force: boolean }>): boolean {
    return job.data.force;
  }
  // @ts-expect-error neither the job nor its data
  @Handle(purge)
  data(data: { olderThan: number }): number {
    return data.olderThan;
  }
  // @ts-expect-error the job or its data comes first
  @Handle(purge)
  id(@JobId() id: string, @JobData() _data: { olderThan: string }): string {
    return id;
  }
  // @ts-expect-error not a method
  @Handle('field')
  field = 1;
  // @ts-expect-error not a method
  @Handle('getter')
  get getter(): number {
    return 1;
  }
}

Processor(['critical', welcome, 'low'] as const);
Processor({ critical: 6, default: 3 });
// @ts-expect-error a weight is a number
Processor({ critical: '6' });
// @ts-expect-error a list is of names and definitions
Processor(['critical', 3]);
// @ts-expect-error no such option
Processor('email', { concurrenzy: 5 });

new Accepted().exact(createTestJob({ data: { to: 'ada', count: 1 } }));
