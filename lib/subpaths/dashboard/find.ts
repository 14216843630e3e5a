import { readEach } from '../../inspect/queue-inspector.js';
import { checkJobId } from '../../job/job-id.js';
import { visible, type Route } from './call.js';
import { toRow, type FoundJob } from './views.js';

/** The jobs with this id, in all queues that this person may see. Queues that cannot be read are left out. */
export const findJob: Route = async (call, parts): Promise<FoundJob[]> => {
  const { engine, optionsOf, redactor } = parts;
  const jobId = checkJobId(call.query['id'] ?? '');
  const read = async (queue: string): Promise<FoundJob | null> => {
    const job = await engine.admin.get(queue, jobId, true);
    if (!job || !(await call.rightsOf({ queue, jobId })).includes('read')) return null;
    return { queue, ...toRow(job, optionsOf(queue), new Map(), redactor) };
  };
  const found = await readEach(await visible(call, parts), read, new Map());
  return found.filter((one) => one !== null);
};
