import { setTimeout as pause } from 'node:timers/promises';
import {
  JobFailedError,
  JobNotFoundError,
  WaitTimeoutError,
  WrongStateError,
  type Queue,
} from '#lib/index.js';
import type { AddArgs, Call, Verb } from '../../history/record.js';
import type { Recorder } from '../../history/recorder.js';
import { Random } from '../random.js';
import { KINDS, ORDERED, SCHEDULE, SCHEDULE_MS, type MixedData, type MixedKind } from './queues.js';

/** Ids that several clients act on at the same time are chosen among so many. */
const HOT_IDS = 8;
/** For so long an id is among them, so that no id has a history too long to be checked. */
const HOT_MS = 400;
/** Calls of one client at once, and the longest pause between two of them. */
const WIDTH = 8;
const PAUSE_MS = 8;
const HOUR_MS = 3_600_000;
const BACKOFF_MS = 20;

type Act = (queue: Queue, id: string) => Promise<void>;

/** Makes calls of every kind on the mixed queues, and writes each of them down. */
export class MixedClient {
  private readonly random: Random;
  private adds = 0;

  constructor(
    private readonly queues: ReadonlyMap<string, Queue>,
    private readonly recorder: Recorder,
    private readonly name: string,
    seed: number,
  ) {
    this.random = new Random(seed);
  }

  /** Makes so many calls, some of them at once, or as many as it can until it is told to stop. */
  async run(calls: number, signal?: AbortSignal): Promise<void> {
    const queues = [...this.queues.values()].filter(({ name }) => name !== ORDERED);
    let left = calls;
    const loop = async () => {
      while (left-- > 0 && !signal?.aborted) {
        await this.act()(this.random.pick(queues), this.hotId());
        await pause(this.random.int(0, PAUSE_MS));
      }
    };
    await Promise.all(Array.from({ length: WIDTH }, loop));
  }

  async schedule(): Promise<void> {
    const [queue] = this.queues.values();
    const data: MixedData = { tag: SCHEDULE, kind: 'quick', ms: 0 };
    await this.call('schedule', queue!, '', { tag: SCHEDULE, every: SCHEDULE_MS }, async () => {
      const rule = { every: SCHEDULE_MS, missed: 'all' } as const;
      return (await queue!.schedules.upsert(SCHEDULE, rule, { name: 'quick', data })).outcome;
    });
  }

  /** Adds jobs of several priorities to a paused queue; their order is that of their priorities, then of their adds. */
  async batch(size: number): Promise<void> {
    const queue = this.queues.get(ORDERED)!;
    await this.pause(queue);
    const jobs: { tag: string; priority: number }[] = [];
    for (let i = 0; i < size; i++) {
      const priority = this.random.int(0, 3);
      const tag = await this.add(
        queue,
        `${this.name}-${this.adds}`,
        'quick',
        priority > 0 ? { priority } : {},
      );
      jobs.push({ tag, priority });
    }
    const tags = jobs.toSorted((a, b) => a.priority - b.priority).map(({ tag }) => tag);
    const end = this.recorder.begin('batch', queue.name, '', { tags });
    await this.resume(queue);
    end('ok');
  }

  /** The end of each job of this history. */
  async lookAtAll(history: readonly Call[]): Promise<void> {
    const keys = new Set(history.flatMap(({ queue, id }) => (id === '' ? [] : [`${queue} ${id}`])));
    for (const key of keys) {
      const [queue, id] = key.split(' ') as [string, string];
      if (!id.startsWith(`${SCHEDULE}@`)) await this.get(this.queues.get(queue)!, id, { final: true });
    }
  }

  private act(): Act {
    const acts: readonly (readonly [number, Act])[] = [
      [34, (queue, id) => this.add(queue, id).then(() => undefined)],
      [6, (queue) => this.addMany(queue)],
      [6, (queue) => this.addAndWait(queue)],
      [12, (queue, id) => this.cancel(queue, id)],
      [8, (queue, id) => this.remove(queue, id)],
      [16, (queue, id) => this.get(queue, id)],
      [8, (queue, id) => this.retry(queue, id)],
      [6, (queue, id) => this.promote(queue, id)],
      [2, (queue) => this.clean(queue)],
      [2, (queue) => this.pauseAndResume(queue)],
    ];
    let lot = this.random.int(
      1,
      acts.reduce((sum, [share]) => sum + share, 0),
    );
    return acts.find(([share]) => (lot -= share) <= 0)![1];
  }

  /** The same for all clients of the machine at about the same time. */
  private hotId(): string {
    return `id-${Math.floor(this.recorder.now() / HOT_MS)}-${this.random.int(1, HOT_IDS)}`;
  }

  private async add(
    queue: Queue,
    id: string,
    only?: MixedKind,
    more: { readonly priority?: number } = {},
  ): Promise<string> {
    const { tag, data, options, args } = this.job(only, { ...more, id });
    await this.call('add', queue, id, args, async () =>
      (await queue.add(data.kind, data, options)).duplicate ? 'duplicate' : 'added',
    );
    return tag;
  }

  private async addMany(queue: Queue): Promise<void> {
    const jobs = Array.from({ length: this.random.int(2, 8) }, (_, i) =>
      this.job(undefined, { id: `${this.name}-many-${this.adds}-${i}` }),
    );
    let send!: () => void;
    const begun = new Promise<void>((resolve) => (send = resolve));
    const entries = jobs.map(({ data, options }) => ({ name: data.kind, data, options }));
    const added = begun.then(() => queue.addBulk(entries));
    const calls = jobs.map(({ options, args }, i) =>
      this.call('add', queue, options.id, args, async () =>
        (await added)[i]!.duplicate ? 'duplicate' : 'added',
      ),
    );
    // All of them are written down before the first of them can run.
    send();
    await Promise.all(calls);
  }

  private async addAndWait(queue: Queue): Promise<void> {
    const id = `${this.name}-wait-${this.adds}`;
    const kind = this.random.pick(['quick', 'slow', 'doomed'] as const);
    const { data, options, args } = this.job(kind, { id });
    const wait = this.recorder.begin('wait', queue.name, id, { tag: data.tag });
    await this.call('add', queue, id, args, async () => {
      try {
        wait('ok', await queue.addAndWait(kind, data, { ...options, waitTimeout: '10s' }));
      } catch (error) {
        wait('error', String(error));
        // It died, was cancelled or was removed: then it had been added.
        if (!(error instanceof JobFailedError)) throw error;
      }
      return 'added';
    });
  }

  private cancel(queue: Queue, id: string): Promise<void> {
    return this.call('cancel', queue, id, {}, () => queue.cancel(id, 'chaos'));
  }

  private remove(queue: Queue, id: string): Promise<void> {
    return this.call('remove', queue, id, {}, () => queue.remove(id).then(() => 'removed'));
  }

  private retry(queue: Queue, id: string): Promise<void> {
    return this.call('retry', queue, id, {}, () => queue.dead.retry(id).then(() => 'retried'));
  }

  private promote(queue: Queue, id: string): Promise<void> {
    return this.call('promote', queue, id, {}, () => queue.promote(id).then(() => 'promoted'));
  }

  private get(queue: Queue, id: string, args: object = {}): Promise<void> {
    return this.call('get', queue, id, args, async () => {
      const job = await queue.get<MixedData>(id);
      return job && { state: job.state, tag: job.data?.tag ?? '', reason: job.failure?.reason ?? null };
    });
  }

  private async clean(queue: Queue): Promise<void> {
    // An occurrence that is removed before it runs would be in no ledger, so it would look as if it had never been added.
    const [scheduled] = this.queues.values();
    const states = [
      'dead',
      'completed',
      ...(queue === scheduled ? [] : (['waiting', 'delayed'] as const)),
    ] as const;
    const state = this.random.pick(states);
    // Past the public call, which answers how many and not which.
    const call = { state, olderThanMs: 200, limit: 3 };
    await this.call(
      'clean',
      queue,
      '',
      {},
      async () => (await queue['engine'].upkeep.clean(queue.name, call)).removed,
    );
  }

  private async pauseAndResume(queue: Queue): Promise<void> {
    await this.pause(queue);
    await pause(this.random.int(1, 50));
    await this.resume(queue);
  }

  private pause(queue: Queue): Promise<void> {
    return this.call('pause', queue, '', {}, () => queue.pause());
  }

  private resume(queue: Queue): Promise<void> {
    return this.call('resume', queue, '', {}, () => queue.resume());
  }

  private job(only: MixedKind | undefined, given: { readonly id: string; readonly priority?: number }) {
    const { random } = this;
    const kind = only ?? random.pick(KINDS);
    const data: MixedData = { tag: `${this.name}.${++this.adds}`, kind, ms: random.int(1, 60) };
    const rarely = (one: number) => random.int(1, one) === 1;
    const args: AddArgs = {
      tag: data.tag,
      retention: HOUR_MS,
      attempts: kind === 'overrun' || kind === 'hopeless' ? 2 : 3,
      backoff: BACKOFF_MS,
      ...(only === undefined && rarely(3) && { delay: random.int(20, 400) }),
      ...(only === undefined && rarely(4) && { priority: random.int(1, 5) }),
      ...(only === undefined && rarely(10) && { expiresIn: random.int(100, 1_000) }),
      ...(given.priority !== undefined && { priority: given.priority }),
    };
    const { tag, ...rest } = args;
    // A list of waits has no jitter.
    const exact = { ...rest, id: given.id, backoff: [BACKOFF_MS] };
    const options = kind === 'overrun' ? { ...exact, timeout: 30 } : exact;
    return { tag, data, options, args };
  }

  /** Writes down a call and its answer; the errors that a call may have are answers too. */
  private async call(
    verb: Verb,
    queue: Queue,
    id: string,
    args: object,
    act: () => Promise<Call['value']>,
  ): Promise<void> {
    const end = this.recorder.begin(verb, queue.name, id, args);
    try {
      end('ok', await act());
    } catch (error) {
      if (error instanceof JobNotFoundError) end('ok', 'not-found');
      else if (error instanceof WrongStateError) end('ok', 'wrong-state');
      else if (error instanceof WaitTimeoutError) end('indeterminate', String(error));
      else end((error as { applied?: string }).applied === 'no' ? 'error' : 'indeterminate', String(error));
    }
  }
}
