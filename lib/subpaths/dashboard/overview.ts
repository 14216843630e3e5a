import { counted, quoted, whose } from '../../job/text.js';
import type { LimitsOfQueue, WorkerInfo } from '../../inspect/queue-inspector.js';
import { span } from './time-text.js';
import type { Attention, QueueView } from './views.js';

const LATE_MS = 60_000;

/** Without the seconds of longer times, which would change the text at each look. */
function timeOf(ms: number): string {
  return span(ms < 60_000 ? ms : ms - (ms % 60_000)).replaceAll('\u00a0', ' ');
}

/** Problems that need attention, the worst first. */
export function attentionOf(
  queues: readonly QueueView[],
  silent: readonly { readonly queue: string; readonly count: number }[],
  late: readonly { readonly queue: string; readonly id: string; readonly lateMs: number }[],
  workers: readonly WorkerInfo[],
  limits: readonly LimitsOfQueue[],
  warnings: readonly { readonly message: string }[],
  maxOldestMs: number,
): Attention[] {
  const found: Attention[] = warnings.map(({ message }) => ({ level: 'bad', text: message, page: 'redis' }));
  for (const queue of queues) {
    const { name, counts, today } = queue;
    found.push(...waitingIn(queue, maxOldestMs));
    if (today.dead > 0)
      found.push({
        level: counts.dead > 0 ? 'bad' : 'warn',
        queue: name,
        page: 'dead',
        text: `${counted(today.dead, 'job')} died today; ${counts.dead} dead in all.`,
      });
    else if (counts.dead > 0)
      found.push({
        level: 'warn',
        queue: name,
        page: 'dead',
        text: `${counted(counts.dead, 'dead job')} from earlier days.`,
      });
  }
  for (const { queue, count } of silent.filter((one) => one.count > 0))
    found.push({
      level: 'bad',
      queue,
      page: 'workers',
      text: `${counted(count, 'worker')} went silent, and nobody has taken back the jobs. Start a process that works on it.`,
    });
  for (const { queue, id, lateMs } of late.filter((one) => one.lateMs > LATE_MS))
    found.push({
      level: 'warn',
      queue,
      page: 'schedules',
      text: `Schedule ${quoted(id)} is ${timeOf(lateMs)} late.`,
    });
  found.push(...limits.flatMap(stoppedBy));
  const versions = [...new Set(workers.map(({ versions }) => versions.godwit))];
  if (versions.length > 1)
    found.push({
      level: 'warn',
      page: 'workers',
      text: `Processes run different versions of Godwit: ${versions.join(', ')}.`,
    });
  return found.toSorted((a, b) => Number(a.level === 'warn') - Number(b.level === 'warn'));
}

/** Why jobs of a queue wait for long, if a person can do something about it. */
function waitingIn(queue: QueueView, maxOldestMs: number): Attention[] {
  const { name, counts, paused, pausedPlace, oldestWaitingMs, consumers } = queue;
  const waiting = counted(counts.waiting, 'waiting job');
  const found: Attention[] = [];
  const isBad = (page: Attention['page'], text: string) =>
    found.push({ level: 'bad', queue: name, page, text });
  if (consumers === 0 && counts.waiting + counts.active > 0)
    isBad('workers', `No process works on it, and it has ${waiting}.`);
  else if (!paused && pausedPlace !== null && counts.waiting > 0)
    isBad('workers', `It is paused in ${pausedPlace}, and has ${waiting}.`);
  else if (!paused && oldestWaitingMs !== null && oldestWaitingMs > maxOldestMs)
    isBad('queue', `The oldest of ${waiting} has waited for ${timeOf(oldestWaitingMs)}.`);
  if (paused)
    found.push({
      level: 'warn',
      queue: name,
      page: 'queue',
      text: counts.waiting > 0 ? `It is paused, and has ${waiting}.` : 'It is paused.',
    });
  return found;
}

/** The limits of a queue that let nothing start: an open circuit breaker, or a hold. */
function stoppedBy({ queue, limits }: LimitsOfQueue): Attention[] {
  const place = queue === '' ? { page: 'queues' as const } : { queue, page: 'queue' as const };
  return limits.flatMap(({ field, breaker, blockedForMs }) => {
    const of = whose(field);
    const isOpen = breaker !== null && breaker !== 'closed';
    if (!isOpen && blockedForMs === 0) return [];
    const text = isOpen
      ? `The circuit breaker of ${of} is ${breaker}, because too many runs failed.`
      : `No job of ${of} starts for ${timeOf(blockedForMs)} more: it is held.`;
    return [{ level: 'warn' as const, ...place, text }];
  });
}
