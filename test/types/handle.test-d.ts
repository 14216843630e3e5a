import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Attempt, JobData, JobId, Signal } from '#lib/decorators/job-params.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { defineJob, type JobOf } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';

const welcome = defineJob('email', 'welcome', z.object({ to: z.string(), count: z.coerce.number() }));
const purge = defineJob<{ olderThan: string }>('email', 'purge');
const nothing = defineJob<null>('email', 'nothing');

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
