import type { ExternalContextCreator } from '@nestjs/core';
import type { Job } from '../job/job.js';

type ParamsFactory = NonNullable<Parameters<ExternalContextCreator['create']>[4]>;

/** Numbers of the parameter decorators. Pipes take that of the data for the body of a request, which it is to them. */
export const JOB_PARAMS = { data: 3, job: 100, id: 101, attempt: 102, signal: 103 } as const;

/** What the parameter decorators of the library take out of the job. */
export const jobParams: ParamsFactory = {
  exchangeKeyForValue(type, property, [job]: [Job<any>]) {
    switch (type) {
      case JOB_PARAMS.data:
        return typeof property === 'string' ? job.data?.[property] : job.data;
      case JOB_PARAMS.job:
        return job;
      case JOB_PARAMS.id:
        return job.id;
      case JOB_PARAMS.attempt:
        return job.attempt;
      case JOB_PARAMS.signal:
        return job.signal;
      default:
        return undefined;
    }
  },
};
