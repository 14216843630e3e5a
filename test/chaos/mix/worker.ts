import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Handle, JobAbortedError, Processor, Snooze, UnrecoverableError, type Job } from '#lib/index.js';
import type { ExchangeAnswer, ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import type { Ending, RunValue } from '../../history/record.js';
import type { End, Recorder } from '../../history/recorder.js';
import { ORDERED, WEIGHTED, type MixedData } from './queues.js';

interface Running {
  readonly run: number;
  /** Its handler has ended, and no settlement of it was sent. */
  hasEnded: boolean;
}

interface Settling {
  readonly id: string;
  readonly run: number;
}

/** Runs the jobs of the mixed queues, and writes down each run and what the store answers to its outcome. */
export class MixedWorker {
  private runs = 0;
  /** By queue and id: two runs of one job, one of them under a lost lease, may be in one process. */
  private readonly running = new Map<string, Running[]>();
  private readonly settling = new Map<string, Settling[]>();
  private readonly snoozed = new Set<string>();

  constructor(
    private readonly recorder: Recorder,
    private readonly name: string,
  ) {}

  /** Processors for the providers of a module. */
  processors(concurrency: number) {
    const perform = (job: Job<MixedData>) => this.perform(job);
    @Processor(WEIGHTED, { concurrency })
    class Weighted {
      @Handle()
      run(job: Job<MixedData>) {
        return perform(job);
      }
    }
    @Processor(ORDERED, { concurrency: 1 })
    class Ordered {
      @Handle()
      run(job: Job<MixedData>) {
        return perform(job);
      }
    }
    return [Weighted, Ordered];
  }

  /** Stands between the workers and their engine; changes nothing that passes. */
  watch(engine: QueueEngine): void {
    const exchange = engine.exchange.bind(engine);
    engine.exchange = async (queue, call) => {
      // A call without an answer is made again with the same number.
      const name = [queue, call.worker, call.pipelined, call.seq].join(' ');
      // A job that is given back unstarted says nothing of an earlier run of it, whose outcome was never sent.
      const ended = call.settled.filter(({ outcome }) => outcome.kind !== 'released' || outcome.started);
      const settling = this.settling.get(name) ?? ended.flatMap(({ id }) => this.take(queue, id));
      this.settling.set(name, settling);
      const ends = settling.map(({ id, run }) => this.recorder.begin('settle', queue, id, { run }));
      try {
        const answer = await exchange(queue, call);
        settling.forEach(({ id }, i) => ends[i]!(...answered(answer, call, id)));
        this.settling.delete(name);
        return answer;
      } catch (error) {
        for (const end of ends) end('indeterminate');
        throw error;
      }
    };
  }

  private async perform(job: Job<MixedData>): Promise<unknown> {
    const { tag } = job.data;
    const run = ++this.runs;
    const entry: Running = { run, hasEnded: false };
    const key = `${job.queue} ${job.id}`;
    this.running.set(key, [...(this.running.get(key) ?? []), entry]);
    const write = this.recorder.begin('run', job.queue, job.id, { tag, run, attempt: job.attempt });
    const end = (ending: Ending, more: Omit<RunValue, 'ending'> = {}) => {
      entry.hasEnded = true;
      write('ok', { ending, ...more } satisfies RunValue);
    };
    const failed = job.attempt >= job.attempts ? 'buried' : 'failed';
    // The attempt has failed then, whatever the handler still does.
    job.signal.addEventListener('abort', () => {
      if (reasonOf(job) === 'timeout') end(failed);
    });
    try {
      await this.work(job);
      const result = { tag, run: `${this.name}/${run}` };
      end('returned', { result });
      return result;
    } catch (error) {
      if (error instanceof Snooze) end('snoozed', { snooze: error.delayMs });
      else if (error instanceof UnrecoverableError) end('buried');
      else if (['shutdown', 'lease-lost'].includes(reasonOf(job) ?? '')) end('given-back');
      else end(failed);
      throw error;
    }
  }

  private async work(job: Job<MixedData>): Promise<void> {
    const { kind, ms, tag } = job.data;
    switch (kind) {
      case 'quick':
        return;
      case 'slow':
        await pause(ms, undefined, { signal: job.signal });
        return;
      case 'flaky':
        if (job.attempt === 1) throw new Error('the first attempt fails');
        return;
      case 'hopeless':
        throw new Error('every attempt fails');
      case 'doomed':
        throw new UnrecoverableError('this job can never succeed');
      case 'snoozed':
        if (this.snoozed.has(tag)) return;
        this.snoozed.add(tag);
        throw new Snooze(ms);
      case 'overrun':
        await once(job.signal, 'abort');
        throw job.signal.reason;
      case 'chatty':
        await job.progress({ at: 1 });
        await job.log(`attempt ${job.attempt} of ${tag}`);
        await job.progress({ at: 2 });
    }
  }

  /** The run whose outcome is about to be sent; none where it cannot be told which it is. */
  private take(queue: string, id: string): Settling[] {
    const key = `${queue} ${id}`;
    const known = this.running.get(key) ?? [];
    const ended = known.filter(({ hasEnded }) => hasEnded);
    const open = known.filter(({ hasEnded }) => !hasEnded);
    if (open.length > 0) this.running.set(key, open);
    else this.running.delete(key);
    // Several: some belong to leases that were lost, and were never sent.
    return ended.length === 1 ? [{ id, run: ended[0]!.run }] : [];
  }
}

function answered(answer: ExchangeAnswer, { settled }: ExchangeCall, id: string): Parameters<End> {
  if (answer.kind === 'stale') return ['indeterminate'];
  const isHeld = answer.kind === 'exchanged' && !answer.lost.includes(id);
  // Two runs of one job in one call: of which of them the answer speaks is not known.
  if (settled.filter((run) => run.id === id).length > 1) return ['indeterminate'];
  return ['ok', isHeld ? 'accepted' : 'refused'];
}

function reasonOf({ signal }: Job): string | undefined {
  const { reason } = signal as { reason?: unknown };
  return reason instanceof JobAbortedError ? reason.reason : undefined;
}
