import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { EnqueueCall, ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import { RedisUnavailableError } from '#lib/errors.js';
import { brokenRules } from './invariants.js';
import { QueueModel } from './queue-model.js';
import { expectSame, LIMITS, QUEUE, type AnyRig, type Fate, type Rig } from './rig.js';

/** A lane of a producer, with the number of its last call. */
interface Speaker {
  name: string;
  seq: number;
}

/** A worker, with the number of its last exchange, and of the last that went beside others. */
interface Worker extends Speaker {
  besideSeq: number;
}

export type PastCall =
  | { readonly verb: 'enqueue'; readonly call: EnqueueCall }
  | { readonly verb: 'exchange'; readonly call: ExchangeCall };

/** What one sequence of commands plays on: the model, and what its workers and producers know of themselves. */
export class Scene<R extends AnyRig = Rig> {
  readonly model = new QueueModel(LIMITS);
  readonly workers: Worker[] = [0, 1, 2].map((n) => ({ name: `w${n}`, seq: 0, besideSeq: 0 }));
  readonly lanes: Speaker[] = [0, 1].map((n) => ({ name: `l${n}`, seq: 0 }));
  readonly past: PastCall[] = [];
  private names = 3;
  private jobs = 0;
  /** Keys were deleted by hand and nothing was mended since. */
  broken = false;
  /** The state that was looked at last: what has not changed is not looked at again. */
  private audited: unknown;

  constructor(readonly rig: R) {}

  nextBody(): string {
    this.jobs += 1;
    return `job${this.jobs % 3}\nbody ${this.jobs}`;
  }

  /** As a worker does that is told that it is not known. */
  rename(worker: Worker): void {
    worker.name = `w${this.names++}`;
    worker.seq = 0;
    worker.besideSeq = 0;
  }

  /**
   * Lets the engine and the model do the same, and compares what they answer and leave. What was lost is said again with
   * the same numbers; `idempotent` calls must then answer as if it had been the first time.
   */
  async both<A>(
    act: (engine: QueueEngine) => Promise<A>,
    expected: (model: QueueModel) => A,
    { fate = 'answered', idempotent = false }: { fate?: Fate; idempotent?: boolean } = {},
  ): Promise<A> {
    const { rig, model } = this;
    rig.fate = fate;
    let answer: A;
    let first: A | undefined;
    if (fate === 'answered') answer = await act(rig.engine);
    else {
      const error = await act(rig.engine).then(
        () => assert.fail('a call whose answer was lost was answered'),
        (thrown: unknown) => thrown,
      );
      assert(error instanceof RedisUnavailableError && error.applied === 'unknown', String(error));
      if (rig.wasRun) first = expected(model);
      answer = await act(rig.engine);
    }
    expectSame(answer, expected(model), 'the answer');
    if (first !== undefined && idempotent) expectSame(answer, first, 'the answer to a repetition');
    await this.compare();
    return answer;
  }

  /** The whole state, what was said since, the rules, and what the auditor says of them. */
  async compare(): Promise<void> {
    const { model, rig } = this;
    const said = model.takeSaid();
    const after = said.length > 0 ? said[0]!.number - 1 : model.lastEvent;
    const { state, events } = await rig.snapshot(after);
    expectSame(state, rig.visible(model.state()), 'the state');
    const brief = events.map(({ number, type, id, name, attempt, reason }) => ({
      number,
      type,
      id,
      name,
      attempt,
      reason,
    }));
    expectSame(brief, said, 'the events');
    if (this.broken || isDeepStrictEqual(state, this.audited)) return;
    this.audited = state;
    expectSame(brokenRules(state, model.now), [], 'the rules');
    const { violations } = await rig.engine.admin.audit(QUEUE);
    expectSame(
      violations.filter(({ kind }) => kind !== 'lease-ahead'),
      [],
      'the audit',
    );
  }
}
