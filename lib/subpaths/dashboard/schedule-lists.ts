import { readEach } from '../../inspect/queue-inspector.js';
import { scheduledJobId } from '../../job/job-id.js';
import type { JobState } from '../../job/job-state.js';
import { startTimes } from '../../producer/job-snapshot.js';
import { queueOf, unreadableOf, visible, type Route } from './call.js';
import { jobsOfSchedule } from './job-search.js';
import { NEXT_RUNS } from './schedule-edits.js';
import {
  toRow,
  toScheduleView,
  type ScheduleHistory,
  type ScheduleResults,
  type SchedulesView,
} from './views.js';

/** Schedules, with what became of their jobs. */

/** Maximum number of schedules of a queue in one answer. */
const MAX_SCHEDULES = 200;
/** Maximum number of schedules of a queue whose last results are read. */
const MAX_RESULTS = 50;

export const schedules: Route = async (call, parts): Promise<SchedulesView> => {
  const names = await visible(call, parts);
  const notShown: Record<string, number> = {};
  const faults = new Map<string, Error>();
  const read = async (name: string) => {
    const rights = await call.rightsOf({ queue: name });
    const handle = parts.handleOf(name);
    const found = await handle.schedules.list({ limit: MAX_SCHEDULES });
    const more = found.length < MAX_SCHEDULES ? 0 : (await handle.schedules.count()) - found.length;
    if (more > 0) notShown[name] = more;
    return Promise.all(
      found.map(async (one) => {
        const isReadable = one.rule !== null;
        const next = isReadable ? await handle.schedules.nextRuns(one.id, NEXT_RUNS).catch(() => []) : [];
        return toScheduleView(one, next, rights, parts.redactor);
      }),
    );
  };
  const all = await readEach(names, read, faults);
  return { schedules: all.flat(), notShown, unreadable: unreadableOf(faults) };
};

/** It reads up to ten jobs of each schedule, so the page asks for it less often than for the schedules. */
export const scheduleResults: Route = async (call, parts): Promise<ScheduleResults> => {
  const { engine } = parts;
  const read = async (name: string) => {
    const { schedules: all } = await engine.schedules.list(name, { offset: 0, limit: MAX_RESULTS });
    const states: [id: string, states: (JobState | null)[]][] = [];
    for (const { id, recent } of all) {
      const ids = recent.map((at) => scheduledJobId(id, at));
      // oxlint-disable-next-line no-await-in-loop -- the jobs of one schedule at a time
      const jobs = await Promise.all(ids.map((jobId) => engine.admin.get(name, jobId, true)));
      states.push([id, jobs.map((job) => job?.state ?? null)]);
    }
    return [name, Object.fromEntries(states)] as const;
  };
  return Object.fromEntries(await readEach(await visible(call, parts), read, new Map()));
};

export const scheduleHistory: Route = async (call, parts): Promise<ScheduleHistory> => {
  const { name } = await queueOf(call, parts);
  const { jobs, isPartial } = await jobsOfSchedule(parts.engine, name, call.params['id']!);
  const starts = await startTimes(parts.engine, name, jobs);
  const options = parts.optionsOf(name);
  return { jobs: jobs.map((job) => toRow(job, options, starts, parts.redactor)), isPartial };
};
