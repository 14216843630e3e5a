import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { LimitField, LimitRule } from '#lib/contract/limit-verbs.js';
import type { Patch } from '../support/patched-client.js';
import { casts, heal, Ledger, type Actor } from './actors.js';
import { MemoryRig } from './memory-rig.js';
import { expectSame, QUEUE, Rig, type Fate } from './rig.js';
import { Stage } from './stage.js';

interface Drawn {
  readonly cast: readonly Actor[];
  readonly fates: fc.Stream<Fate>;
  readonly rules: Readonly<Record<string, LimitRule>> | null;
}

const fates = fc.infiniteStream(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<Fate>('answered') },
    { weight: 1, arbitrary: fc.constant<Fate>('reply lost') },
    { weight: 1, arbitrary: fc.constant<Fate>('call lost') },
  ),
);

/** Rules that a queue with groups has from the beginning. */
const rules: fc.Arbitrary<{ readonly q: LimitRule; readonly g: LimitRule }> = fc.record({
  q: fc.constantFrom<LimitRule>({}, { concurrency: 1 }, { concurrency: 3 }),
  g: fc.constantFrom<LimitRule>(
    { concurrency: 1 },
    { concurrency: 2, weight: 2 },
    { concurrency: 2, rate: { max: 2, per: 10_000, window: 'sliding', burst: 1 } },
    { order: 'strict' },
    { order: 'strict', onDead: 'block' },
  ),
});
/** Keys of lines and slots: empty as soon as there is no job. */
const OF_LINES = ['lines', 'lineStates', 'ready', 'resting', 'slots', 'grouped', 'limitStates'];

/**
 * Several engines at once: producers, workers, the clock, upkeep and people, in every order of their calls and answers, some
 * of which are lost. The memory engine does the same calls in the order in which Redis ran them. In the end nothing is left over.
 */
export class Interleaving {
  private stage: Stage | undefined;

  private constructor(
    private readonly rig: Rig,
    private readonly isCompared: boolean,
    private readonly isGrouped: boolean,
  ) {}

  /**
   * @param patch breaks the engines, so that only the rules can notice.
   * @param isGrouped whether the queue has limits, and half of its jobs a group.
   */
  static async open(url: string, patch?: Patch, isGrouped = false): Promise<Interleaving> {
    let self: Interleaving | undefined;
    const rig = await Rig.open(url, {
      engines: 8,
      around: (name, send, args) => (self?.stage ? self.stage.around(name, send, args) : send()),
      commands: ['zrange', 'scan', 'llen'],
      ...(patch ? { patch } : {}),
    });
    self = new Interleaving(rig, patch === undefined, isGrouped);
    return self;
  }

  close(): Promise<void> {
    return this.rig.close();
  }

  property(tick: () => void): fc.IAsyncPropertyWithHooks<[fc.Scheduler, Drawn]> {
    const drawn = fc.record({
      cast: casts,
      fates,
      rules: this.isGrouped ? rules : fc.constant(null),
    });
    return fc.asyncProperty(fc.scheduler(), drawn, async (scheduler, one) => {
      tick();
      await this.play(scheduler, one);
    });
  }

  private async play(scheduler: fc.Scheduler, drawn: Drawn): Promise<void> {
    const { rig, isGrouped } = this;
    const { cast } = drawn;
    const ledger = new Ledger();
    const memory = this.isCompared ? new MemoryRig() : null;
    const nextFate = () => drawn.fates.next().value ?? 'answered';
    const stage = new Stage(rig, scheduler, nextFate, memory, isGrouped);
    await rig.reset(stage.now);
    for (const [field, rule] of Object.entries(drawn.rules ?? {}) as [LimitField, LimitRule][])
      for (const engine of [rig.engine, memory?.engine]) await engine?.limits.set(QUEUE, field, 'code', rule);
    this.stage = stage;
    try {
      const parts = cast.map((actor, i) => actor.play(stage.watched(rig.engines[i]!), stage, ledger));
      await scheduler.waitFor(Promise.all(parts));
      await scheduler.waitFor(heal(stage.watched(rig.engine), stage, ledger));
    } finally {
      this.stage = undefined;
    }
    stage.expectFine();
    assert.equal(ledger.stored, stage.born, 'every job that is in was said to be in, once');
    assert(ledger.completed <= stage.completed, 'what was said to be accepted was');
    assert(stage.completed <= ledger.completed + ledger.unknown, 'what was said to be lost was');
    assert.equal(stage.born, stage.completed + stage.gone + stage.unfinished(), 'no job is lost');
    expectSame((await rig.engine.admin.audit(QUEUE)).violations, [], 'the audit in the end');
    if (!isGrouped) return;
    const { state } = await rig.snapshot(Number.MAX_SAFE_INTEGER);
    expectSame(
      OF_LINES.filter((key) => key in state),
      [],
      'what is left of lines',
    );
  }
}
