import { QUEUE_KEYS, type QueueKeyName } from '../keys.js';
import { defineScript } from '../script.js';
import type { RepairAct } from '../../job/audit-report.js';

/** Keys that are not a place of jobs, so `repair` does not need them. */
const OF_NO_JOB: readonly QueueKeyName[] = [
  'cancelled',
  'upcoming',
  'schedules',
  'firings',
  'scheduleOrder',
  'declarers',
  'declaredSets',
  'large',
  'largeProgress',
  'handled',
  'limits',
  'limitStates',
  'lines',
  'lineStates',
  'resting',
  'shares',
  'unique',
];

export const repair = defineScript({
  name: 'repair',
  memory: 'allow',
  keys: [...QUEUE_KEYS.filter((key) => !OF_NO_JOB.includes(key)), 'stats'],
  args: {
    workers: 'text',
    leaseMs: 'int',
    beatMs: 'int',
    keepMs: 'int',
    maxEvents: 'int',
    deadMax: 'int',
    deadAge: 'int',
  },
  /** ids: id. */
  lists: ['ids'],
  /** The active set and the record of each worker. */
  moreKeys: true,
  reply: (raw: 'again' | readonly [readonly string[], readonly string[]]) => {
    if (raw === 'again') return raw;
    const [words, orphans] = raw;
    const acts: { act: RepairAct; name: string; place: string }[] = [];
    for (let i = 0; i < words.length; i += 3)
      acts.push({ act: words[i] as RepairAct, name: words[i + 1]!, place: words[i + 2]! });
    return { acts, orphans };
  },
});
