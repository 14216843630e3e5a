import type { ModuleMetadata, Type } from '@nestjs/common';
import { isObservable, lastValueFrom } from 'rxjs';
import type { Job } from '#lib/job/job.js';
import type { HandledJob } from '#lib/worker/handler.js';
import { startApp } from './fakes.js';

/** Calls handlers as a pool does, with whole jobs. */
export async function runnerFor(metadata: ModuleMetadata) {
  const { app, pool } = await startApp(['email'], metadata);
  const run = async (job: HandledJob): Promise<any> => {
    const returned: unknown = await pool('email').plan.find(job.name)!.run(job);
    return isObservable(returned) ? lastValueFrom(returned) : returned;
  };
  return { app, run };
}

let jobs = 0;
export function jobOf<Data>(data: Data): Job<Data> & HandledJob {
  jobs += 1;
  const id = `job-${jobs}`;
  const job = { id, name: 'welcome', queue: 'email', data, attempt: 1, attempts: 3 };
  return job as unknown as Job<Data> & HandledJob;
}

/** Numbers the instances of each class. */
export class Counted {
  static made = 0;
  readonly nr: number;
  constructor() {
    const type = new.target as typeof Counted;
    if (!Object.hasOwn(type, 'made')) type.made = 0;
    this.nr = type.made += 1;
  }
}

/** How many instances of a counting class were made. */
export function madeOf(type: Type): number {
  return Object.hasOwn(type, 'made') ? (type as unknown as typeof Counted).made : 0;
}
