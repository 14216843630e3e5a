import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, it } from 'vitest';
import { useServer } from '../support/server.js';
import { casts, heal, Ledger } from './actors.js';
import { expectSame, QUEUE, Rig, type Fate } from './rig.js';
import { runsOf } from './runs.js';
import { Stage } from './stage.js';

// Several engines at once: producers, workers, the clock, upkeep and people, in every order of their calls and answers, some
// of which are lost. No model says what should come out; what must hold at any rate does, and in the end nothing is left over.
const server = useServer();
let rig: Rig;
let stage: Stage | undefined;

beforeAll(async () => {
  rig = await Rig.open(server.url, {
    engines: 8,
    around: (name, send, args) => (stage ? stage.around(name, send, args) : send()),
    commands: ['zrange', 'scan', 'llen'],
  });
});
afterAll(() => rig.close());

const fates = fc.infiniteStream(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<Fate>('answered') },
    { weight: 1, arbitrary: fc.constant<Fate>('reply lost') },
    { weight: 1, arbitrary: fc.constant<Fate>('call lost') },
  ),
);
const runs = runsOf('interleaved', 0.2);

it(
  'keeps every promise, whoever comes first',
  async () => {
    const property = fc.asyncProperty(fc.scheduler(), casts, fates, async (scheduler, cast, drawn) => {
      runs.tick();
      const ledger = new Ledger();
      const played = new Stage(rig, scheduler, () => drawn.next().value ?? 'answered');
      await rig.reset(played.now);
      stage = played;
      try {
        const parts = cast.map((actor, i) => actor.play(rig.engines[i]!, played, ledger));
        await scheduler.waitFor(Promise.all(parts));
        await scheduler.waitFor(heal(rig.engine, played, ledger));
      } finally {
        stage = undefined;
      }
      played.expectFine();
      assert.equal(ledger.stored, played.born, 'every job that is in was said to be in, once');
      assert(ledger.completed <= played.completed, 'what was said to be accepted was');
      assert(played.completed <= ledger.completed + ledger.unknown, 'what was said to be lost was');
      assert.equal(played.born, played.completed + played.gone + played.unfinished(), 'no job is lost');
      expectSame((await rig.engine.audit(QUEUE)).violations, [], 'the audit in the end');
    });
    await fc.assert(property, runs.parameters as never);
  },
  runs.timeout,
);
