import type { Contender } from '../contender.js';
import type { CONTENDERS } from './names.js';

/** Loaded on demand: a contender that is not used need not be installed. */
const loaders: Readonly<Record<(typeof CONTENDERS)[number], () => Promise<Contender>>> = {
  godwit: async () => (await import('./godwit.js')).godwit,
  '@nestjs/bullmq': async () => (await import('./nestjs-bullmq.js')).nestjsBullmq,
  bullmq: async () => (await import('./bullmq.js')).bullmq,
  'bee-queue': async () => (await import('./bee-queue.js')).beeQueue,
  groupmq: async () => (await import('./groupmq.js')).groupmq,
  floor: async () => (await import('./floor.js')).floor,
};

export const contenders: Readonly<Record<string, () => Promise<Contender>>> = loaders;
