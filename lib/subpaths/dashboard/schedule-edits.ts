import { InvalidOptionError, ScheduleNotFoundError } from '../../errors.js';
import type { ScheduleRule } from '../../options/schedule-options.js';
import { editableOf } from '../../producer/schedules.js';
import { checkJsonText } from './acts.js';
import { onQueue, queueOf, type ApiCall, type Route } from './call.js';
import { HttpFault } from './http.js';
import { shownOfSchedule, type NextView } from './views.js';

/** Changes of schedules that were created at run time. */

export const NEXT_RUNS = 5;

/** The next occurrences, if the schedule had this rule. Changes nothing, so it is not recorded. */
export const previewSchedule: Route = async (call, parts): Promise<NextView> => {
  const { name: queue, schedules } = await queueOf(call, parts);
  await call.require('schedule.edit', { queue });
  const next = await schedules.preview(call.params['id']!, call.body['rule'], NEXT_RUNS);
  return { next: next.map((at) => at.getTime()) };
};

/** Saves a rule, and the name, data and options of the job. A field that is left out stays as it is. */
export const editSchedule: Route = onQueue(
  'schedule.edit',
  async (queue, call, parts) => {
    const id = call.params['id']!;
    const there = await queue.schedules.get(id);
    if (!there) throw new ScheduleNotFoundError(queue.name, id);
    const { rule, template } = editableOf(there);
    const canSeeData = (await call.rightsOf({ queue: queue.name })).includes('read-data');
    if (call.body['version'] !== shownOfSchedule(there, canSeeData, parts.redactor).version)
      throw new HttpFault(409, 'CHANGED', 'this schedule has changed since you opened it; open it again');
    const edited = await jsonOf(call, queue.name, (json, field) => {
      const stored = JSON.stringify(template[field] ?? null);
      return JSON.parse(checkJsonText(parts.redactor.restore(json, stored, field), field)) as unknown;
    });
    const { outcome } = await queue.schedules.upsert(id, (call.body['rule'] ?? rule) as ScheduleRule, {
      ...template,
      ...(call.body['name'] !== undefined && { name: call.body['name'] as string }),
      ...edited,
    });
    return { changed: outcome !== 'unchanged' };
  },
  'schedule.upsert',
);

/** The edited data and options. A person who may not see them may not replace them. */
async function jsonOf(
  { body, require }: ApiCall,
  queue: string,
  read: (json: string, field: 'data' | 'options') => unknown,
): Promise<Record<string, unknown>> {
  const fields = (['data', 'options'] as const).filter((field) => body[field] !== undefined);
  if (fields.length > 0) await require('read-data', { queue });
  const entries = fields.map((field) => {
    const json = body[field];
    if (typeof json !== 'string') throw new InvalidOptionError(field, 'JSON, as a string', json);
    return [field, read(json, field) ?? (field === 'options' ? undefined : null)] as const;
  });
  return Object.fromEntries(entries);
}
