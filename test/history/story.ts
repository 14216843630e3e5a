import type { Finding } from './check.js';
import type { AddArgs, BatchArgs, Call, FaultArgs, RunArgs, ScheduleArgs } from './record.js';

/** Delayed bytes arrive within this time after the end of a fault. */
const HEALING_MS = 1_000;

/** Everything that was done to one id of one queue. */
export interface IdStory {
  readonly queue: string;
  readonly id: string;
  readonly calls: readonly Call[];
}

/** A history, by ids and by the tags of its adds. */
export class Story {
  readonly ids = new Map<string, IdStory>();
  /** Acknowledged settlements, by process and run. */
  readonly settled = new Map<string, Call>();
  readonly adds = new Map<string, { readonly call: Call; readonly args: AddArgs }>();
  readonly runs = new Map<string, Call[]>();
  private readonly batches: Call[] = [];
  private readonly schedules = new Map<string, Call>();
  /** When the store acknowledged calls that it has lost. */
  private readonly forgotten: { readonly from: number; readonly to: number }[] = [];
  /** Runs of jobs that a schedule added. */
  private readonly occurrences: Call[] = [];
  /** When a fault hit a process. */
  private readonly cutOff: { readonly process: string; readonly from: number; readonly to: number }[] = [];
  private readonly pauses: { readonly queue: string; readonly from: number; readonly to: number }[] = [];

  constructor(history: readonly Call[]) {
    for (const call of history) {
      const { forgets, met } = call.args as Partial<FaultArgs>;
      if (call.verb === 'schedule') this.schedules.set(String(call.args['tag']), call);
      if (call.verb === 'fault' && forgets) this.forgotten.push(forgets);
      if (call.verb === 'fault' && met !== undefined)
        this.cutOff.push({ process: met, from: call.start, to: (call.end ?? Infinity) + HEALING_MS });
    }
    const isScheduled = ({ verb, args }: Call) => verb === 'run' && this.schedules.has(String(args['tag']));
    const calls = new Map<string, Call[]>();
    const put = (call: Call) => {
      const key = `${call.queue} ${call.id}`;
      const known = calls.get(key);
      if (known) known.push(call);
      else calls.set(key, [call]);
    };
    for (const call of history) {
      this.index(call);
      if (isScheduled(call)) this.occurrences.push(call);
      else if (call.id !== '') put(call);
    }
    for (const call of history) {
      if (call.verb !== 'clean' || call.id !== '' || call.outcome === 'error') continue;
      if (call.outcome === 'ok') for (const id of call.value as string[]) put({ ...call, id });
      else
        for (const [{ queue, id }] of [...calls.values()] as [Call][])
          if (queue === call.queue) put({ ...call, id });
    }
    for (const [key, list] of calls)
      this.ids.set(key, { queue: list[0]!.queue, id: list[0]!.id, calls: list });
    this.findPauses(history);
  }

  private index(call: Call): void {
    if (call.verb === 'settle') this.addSettlement(call);
    if (call.verb === 'batch') this.batches.push(call);
    if (call.verb === 'add') {
      const args = call.args as unknown as AddArgs;
      this.adds.set(args.tag, { call, args });
    }
    if (call.verb === 'run') {
      const { tag } = call.args as unknown as RunArgs;
      const known = this.runs.get(tag);
      if (known) known.push(call);
      else this.runs.set(tag, [call]);
    }
  }

  /**
   * A settlement is repeated until it is answered. A refused one may have been accepted before, with its answer lost.
   */
  private addSettlement(call: Call): void {
    const before = this.settled.get(nameOf(call));
    const isUnheard = before?.outcome === 'indeterminate' && call.value === 'refused';
    if (before?.value !== 'accepted' && !isUnheard) this.settled.set(nameOf(call), call);
  }

  /** Promises that the history as a whole breaks, besides those about single ids. */
  findings(): Finding[] {
    return [...this.outOfOrder(), ...this.ranWhilePaused(), ...this.wrongOccurrences()];
  }

  /** The jobs of a batch must first start in its order. */
  private outOfOrder(): Finding[] {
    return this.batches.flatMap((batch) => {
      const { tags } = batch.args as unknown as BatchArgs;
      const starts = tags.map((tag) => this.runs.get(tag)?.[0]?.start ?? Infinity);
      const at = starts.findIndex((start, i) => i > 0 && start < starts[i - 1]!);
      if (at < 0) return [];
      const text = `${tags[at]} began before ${tags[at - 1]}, which is to run first`;
      return [{ promise: 'ordered', queue: batch.queue, id: '', text }];
    });
  }

  /** A queue is paused from the answer to `pause` until a resume starts. */
  private findPauses(history: readonly Call[]): void {
    const resumes = history.filter(({ verb }) => verb === 'resume');
    for (const { verb, queue, outcome, start, end } of history) {
      if (verb !== 'pause' || outcome !== 'ok' || end === null) continue;
      // A resume that was on its way may have arrived after the pause.
      const mayResume = resumes.filter(
        (resume) => resume.queue === queue && (resume.end === null || resume.end >= start),
      );
      const to = Math.min(Infinity, ...mayResume.map((resume) => resume.start));
      if (to > end) this.pauses.push({ queue, from: end, to });
    }
  }

  private ranWhilePaused(): Finding[] {
    const runs = [...this.runs.values()].flat().filter((run) => !this.isStale(run));
    return runs.flatMap(({ queue, id, start, process }) => {
      const pause = this.pauses.find((p) => p.queue === queue && start > p.from && start < p.to);
      if (!pause || this.wasCutOff(process, pause.from, start)) return [];
      const text = `began in ${process} ${Math.round(start - pause.from)} ms after the answer to pause()`;
      return [{ promise: 'paused', queue, id, text }];
    });
  }

  /**
   * Whether a fault hit this process or its connection in the meantime, so that it may have learned late of a pause.
   */
  private wasCutOff(process: string, from: number, to: number): boolean {
    return this.cutOff.some((fault) => fault.process === process && fault.from <= to && fault.to >= from);
  }

  /** Each occurrence of a schedule adds one job, and none is skipped. */
  private wrongOccurrences(): Finding[] {
    const found: Finding[] = [];
    for (const schedule of this.schedules.values()) {
      const { tag, every } = schedule.args as unknown as ScheduleArgs;
      const runs = this.occurrences.filter(({ args }) => args['tag'] === tag);
      const report = (id: string, text: string) =>
        found.push({ promise: 'one job for each occurrence', queue: schedule.queue, id, text });
      const ids = [...new Set(runs.map(({ id }) => id))];
      for (const id of ids) {
        const ends = runs.filter(
          (run) => run.id === id && this.settled.get(nameOf(run))?.value === 'accepted',
        );
        if (ends.length > 1 && !this.mayBeForgotten(ends.map((run) => this.settled.get(nameOf(run))!)))
          report(id, `was ended ${ends.length} times`);
      }
      const times = ids.map((id) => Date.parse(id.slice(id.lastIndexOf('@') + 1))).toSorted((a, b) => a - b);
      times.forEach((at, i) => {
        const gap = i === 0 ? every : at - times[i - 1]!;
        if (gap !== every) report('', `${gap} ms from one occurrence to the next instead of ${every}`);
      });
    }
    return found;
  }

  /** Whether the store may have lost what it had acknowledged. */
  get mayForget(): boolean {
    return this.forgotten.length > 0;
  }

  /** Whether the store may have lost one of these calls: then nothing is promised. */
  mayBeForgotten(calls: readonly Call[]): boolean {
    // A clean without an answer told nobody which ids it removed, so it counts for every id of its queue.
    const told = calls.filter(({ verb, outcome }) => verb !== 'clean' || outcome === 'ok');
    return this.forgotten.some(({ from, to }) =>
      told.some(({ start, end }) => start <= to && (end ?? Infinity) >= from),
    );
  }

  /** A run of a worker that had lost its lease, or may have: it does not count. */
  isStale(run: Call): boolean {
    return run.end === null || this.settled.get(nameOf(run))?.value === 'refused';
  }
}

/** Of a run or of its settlement. */
export function nameOf({ process, args }: Call): string {
  return `${process}/${String(args['run'])}`;
}
