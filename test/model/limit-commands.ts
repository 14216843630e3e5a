import * as fc from 'fast-check';
import { command, fate } from './command.js';
import { QUEUE } from './rig.js';

const rate = fc.record({
  max: fc.constantFrom(1, 2, 5),
  per: fc.constantFrom(1_000, 10_000),
  window: fc.constantFrom('sliding' as const, 'fixed' as const, 'bucket' as const),
  burst: fc.constantFrom(1, 2),
});
const breaker = fc.record({
  failures: fc.constantFrom(1, 2, 4),
  ratio: fc.constantFrom(0, 0.5),
  window: fc.constantFrom(1_000, 10_000),
  openFor: fc.constantFrom(500, 5_000),
  probes: fc.constantFrom(1, 2),
});
const retryBudget = fc.record(
  { max: fc.constantFrom(1, 2, 4), per: fc.constantFrom(1_000, 10_000), percent: fc.constantFrom(25, 100) },
  { requiredKeys: ['max', 'per'] },
);
const rule = fc.record(
  {
    breaker: fc.oneof(
      { weight: 4, arbitrary: breaker },
      { weight: 1, arbitrary: fc.constant(false as const) },
    ),
    retryBudget: fc.oneof(
      { weight: 4, arbitrary: retryBudget },
      { weight: 1, arbitrary: fc.constant(false as const) },
    ),
    aging: fc.constantFrom({ every: 1_000, by: 1 }, { every: 500, by: 3 }),
    rate: fc.oneof(rate, fc.constant(false as const)),
    concurrency: fc.constantFrom(1, 2, 3, false as const),
    maxSize: fc.constantFrom(1, 3),
    paused: fc.boolean(),
    weight: fc.constantFrom(1, 2, 0.5),
    order: fc.constantFrom('fair' as const, 'strict' as const),
    fairness: fc.constantFrom('turns' as const, 'in-flight' as const, 'in-flight' as const),
    onDead: fc.constantFrom('continue' as const, 'block' as const),
  },
  { requiredKeys: [] },
);
/** The rules that each field takes; a line in strict order counts by its rule alone. */
function fitting(
  of: string,
  {
    rate: its,
    concurrency,
    aging,
    breaker: broken,
    retryBudget: budget,
    fairness,
    ...ofGroups
  }: typeof rule extends fc.Arbitrary<infer T> ? T : never,
) {
  const both = { ...(its !== undefined && { rate: its }), ...(concurrency !== undefined && { concurrency }) };
  if (of.startsWith('g')) return { ...both, ...ofGroups, ...(of === 'g' && fairness && { fairness }) };
  const ofRuns = {
    ...(broken !== undefined && { breaker: broken }),
    ...(budget !== undefined && { retryBudget: budget }),
  };
  return { ...both, ...ofRuns, ...(of === 'q' && aging && { aging }) };
}
export const setLimit = command(
  'set limit',
  fc.record({
    of: fc.constantFrom('q', 'g', 'g:g1', 'n:work'),
    part: fc.constantFrom('code' as const, 'live' as const),
    rule: fc.option(rule, { nil: null, freq: 2 }),
  }),
  (scene, { of, part, rule: given }) => {
    const fitted = given && fitting(of, given);
    return scene.both((engine) => engine.limits.set(QUEUE, of, part, fitted));
  },
);
/** Each running job of a group has a slot then. */
export const setConcurrency = command(
  'set a concurrency',
  fc.record({
    of: fc.constantFrom('g', 'g:g1'),
    rule: fc.record(
      {
        concurrency: fc.constantFrom(1, 2, 3),
        fairness: fc.constantFrom('turns' as const, 'in-flight' as const),
      },
      { requiredKeys: ['concurrency'] },
    ),
  }),
  (scene, { of, rule: given }) =>
    scene.both((engine) => engine.limits.set(QUEUE, of, 'code', fitting(of, given))),
);
/** Jobs of groups in strict order keep their slots while they wait. */
export const setStrict = command(
  'set strict order',
  fc.record({
    of: fc.constantFrom('g', 'g:g1'),
    rule: fc.record(
      { rate, paused: fc.boolean(), onDead: fc.constantFrom('continue' as const, 'block' as const) },
      { requiredKeys: [] },
    ),
  }),
  (scene, { of, rule: given }) =>
    scene.both((engine) => engine.limits.set(QUEUE, of, 'code', { ...given, order: 'strict' })),
);
export const charge = command(
  'charge',
  fc.record({
    of: fc.constantFrom('q', 'g:g1', 'n:work', 's:api'),
    holdMs: fc.constantFrom(0, 0, 500, 5_000, -1),
    count: fc.constantFrom(-3, -1, 0, 2),
    countedAgoMs: fc.constantFrom(undefined, 0, 100, 2_000, 20_000),
    probesAgain: fc.boolean(),
  }),
  (scene, { of, countedAgoMs, ...more }) => {
    const countedAt = countedAgoMs === undefined ? {} : { countedAt: scene.now - countedAgoMs };
    return scene.both((engine) => engine.limits.charge(QUEUE, [{ field: of, ...more, ...countedAt }]));
  },
);

/** Ends of runs, as the worker reports them to breakers and retry budgets. A repeated report counts again. */
const runsOf = (...fields: string[]) =>
  fc.array(
    fc.record({
      field: fc.constantFrom(...fields),
      completed: fc.nat({ max: 2 }),
      failed: fc.nat({ max: 3 }),
      retries: fc.integer({ min: -2, max: 3 }),
      firsts: fc.nat({ max: 4 }),
      closes: fc.nat({ max: 9 }).map((drawn) => drawn === 0),
    }),
    { minLength: 1, maxLength: 3 },
  );

export const report = command(
  'report',
  fc.record({ runs: runsOf('q', 'q', 'n:work'), fate }),
  (scene, drawn) => scene.both((engine) => engine.limits.report(QUEUE, drawn.runs), { fate: drawn.fate }),
);

/** The same to shared limits. It takes several calls, so none of them is lost or repeated. */
export const reportShared = command('report to shared limits', runsOf('q', 's:api', 's:gpu'), (scene, runs) =>
  scene.both((engine) => engine.limits.report(QUEUE, runs)),
);

/** Rules that nothing but the ends of runs uses. */
export const setOfRuns = command(
  'set a breaker',
  fc.record({
    of: fc.constantFrom('q', 'q', 'n:work'),
    rule: fc.record({ breaker, retryBudget }),
  }),
  (scene, { of, rule: given }) => scene.both((engine) => engine.limits.set(QUEUE, of, 'code', given)),
);

// --------------------------------------------------------------------------------------------- limits that queues share

const SHARED_LIMITS = ['api', 'gpu'];

export const setShared = command(
  'set a shared limit',
  fc.record({
    of: fc.constantFrom(...SHARED_LIMITS),
    part: fc.constantFrom('code' as const, 'live' as const),
    rule: fc.option(
      fc.record(
        {
          rate: fc.oneof(rate, fc.constant(false as const)),
          concurrency: fc.constantFrom(1, 2, 4, false as const),
          breaker,
        },
        { requiredKeys: [] },
      ),
      { nil: null, freq: 5 },
    ),
  }),
  (scene, { of, part, rule: given }) =>
    scene.both((engine) => engine.limits.set(QUEUE, `s:${of}`, part, given)),
);

/** As the workers of two queues do before and after their claims. */
export const share = command(
  'share',
  fc.record({
    queue: fc.constantFrom(QUEUE, 'other'),
    worker: fc.constantFrom('s0', 's1'),
    isRepeated: fc.nat({ max: 2 }).map((drawn) => drawn === 0),
    limits: fc.constantFrom(['api'], ['gpu'], SHARED_LIMITS),
    running: fc.nat({ max: 2 }),
    want: fc.nat({ max: 3 }),
    kept: fc.constantFrom(null, null, null, 0, 1, 3),
    unused: fc.boolean(),
    leaseMs: fc.constantFrom(2_000, 8_000),
    fate,
  }),
  async (scene, { queue, isRepeated, fate: drawnFate, ...drawn }) => {
    if (!isRepeated && drawn.kept === null) scene.shareSeq += 1;
    const unused = drawn.kept !== null && drawn.unused;
    const call = { ...drawn, unused, seq: scene.shareSeq };
    await scene.both((engine) => engine.limits.share(queue, call), { fate: drawnFate });
  },
);
