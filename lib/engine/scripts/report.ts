import type { RunReportAnswer } from '../../contract/limit-verbs.js';
import { defineScript } from '../script.js';

type Row = readonly [RunReportAnswer['breaker'], string, string];

export const report = defineScript({
  name: 'report',
  memory: 'allow',
  keys: ['meta', 'limits', 'limitStates', 'lines', 'lineStates', 'ready', 'resting', 'doorbell', 'events'],
  args: { maxEvents: 'int' },
  /** reports: field of the limit, how many runs completed, how many failed, how many of these are retried. */
  lists: ['reports'],
  reply: (rows: readonly Row[]): RunReportAnswer[] =>
    rows.map(([breaker, firstMs, eachMs]) => ({
      breaker,
      firstMs: Number(firstMs),
      eachMs: Number(eachMs),
    })),
});
