import type { ExternalContextCreator } from '@nestjs/core';
import { JOB_PARAMS } from '../decorators/metadata.js';
import type { Job } from '../job/job.js';

type ParamsFactory = NonNullable<Parameters<ExternalContextCreator['create']>[4]>;

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
