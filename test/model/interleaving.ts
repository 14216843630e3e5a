import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { Patch } from '../support/patched-client.js';
import { casts, heal, Ledger, type Actor } from './actors.js';
import { MemoryRig } from './memory-rig.js';
import { expectSame, QUEUE, Rig, type Fate } from './rig.js';
import { Stage } from './stage.js';

const fates = fc.infiniteStream(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<Fate>('answered') },
    { weight: 1, arbitrary: fc.constant<Fate>('reply lost') },
    { weight: 1, arbitrary: fc.constant<Fate>('call lost') },
  ),
);

/**
 * Several engines at once: producers, workers, the clock, upkeep and people, in every order of their calls and answers, some
 * of which are lost. The memory engine does the same calls in the order in which Redis ran them. In the end nothing is left over.
 */
export class Interleaving {
  private stage: Stage | undefined;

  private constructor(
    private readonly rig: Rig,
    private readonly isCompared: boolean,
  ) {}

  /** @param patch makes the engines worse; only the rules are there to notice. */
  static async open(url: string, patch?: Patch): Promise<Interleaving> {
    let self: Interleaving | undefined;
    const rig = await Rig.open(url, {
      engines: 8,
      around: (name, send, args) => (self?.stage ? self.stage.around(name, send, args) : send()),
      commands: ['zrange', 'scan', 'llen'],
      ...(patch ? { patch } : {}),
    });
    self = new Interleaving(rig, patch === undefined);
    return self;
  }

  close(): Promise<void> {
    return this.rig.close();
  }

  property(tick: () => void): fc.IAsyncPropertyWithHooks<[fc.Scheduler, readonly Actor[], fc.Stream<Fate>]> {
    return fc.asyncProperty(fc.scheduler(), casts, fates, async (scheduler, cast, drawn) => {
      tick();
      await this.play(scheduler, cast, () => drawn.next().value ?? 'answered');
    });
  }

  private async play(scheduler: fc.Scheduler, cast: readonly Actor[], nextFate: () => Fate): Promise<void> {
    const { rig } = this;
    const ledger = new Ledger();
    const stage = new Stage(rig, scheduler, nextFate, this.isCompared ? new MemoryRig() : null);
    await rig.reset(stage.now);
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
  }
}
