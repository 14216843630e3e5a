import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, inject, type RunnerTask } from 'vitest';
import '#lib/engine/redis-engine.js';
import { allScripts } from '#lib/engine/script.js';
import { allMutants, FLOW_CONTROL, mutantOf, type Mutant } from './mutants.js';

// One share of the mutants against the specs of the scripts: each spec is loaded once for each mutant, into a suite of its own,
// which ends with the first test that fails. Writes a line for each mutant to a file; `main.mjs` starts this, gives what survives to
// the model, and adds up.
const { MUTATION_ONLY = '', MUTATION_OUT = '/dev/stdout', MUTATION_SHARD = '0/1' } = process.env;
const [shard, shards] = MUTATION_SHARD.split('/').map(Number) as [number, number];

const FOLDER = new URL('../scripts/', import.meta.url);
/** `all-scripts` loads the scripts under their own names, which a mutant does not have. */
const ALL = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.spec.ts') && name !== 'all-scripts.spec.ts')
  .map((name) => name.slice(0, -'.spec.ts'.length));
/** Specs that look at several scripts; what an exchange tells of schedules is in `due-schedules`. */
const MORE = ['letters', 'long-logs', 'undeclared-workers', 'events', 'due-schedules', '../faults/planted'];
/** Specs of `test/scripts` for flow control; for other scripts the spec with their name. Those of functions are short, so they are first. */
const OF_FLOW_CONTROL: Readonly<Record<string, readonly string[]>> = {
  'set-limits': ['set-limits', 'undeclared-workers'],
  'shared/corrections': ['limit-functions'],
  'shared/rates': ['limit-functions'],
  'shared/limits': ['limit-functions'],
  'shared/breakers': ['limit-functions'],
  'shared/lines': ['claim-limited', 'wake-lines'],
  'shared/slots': ['claim-limited'],
};
/** Specs of both engines, and some others, that test what a script or a fragment does. */
const OF_BOTH_ENGINES: Readonly<Record<string, readonly string[]>> = {
  beat: ['leases'],
  clean: ['upkeep'],
  counts: ['people', 'kept-cancelled'],
  declare: ['declarations'],
  'due-schedules': ['schedules'],
  enqueue: ['adding', 'unique', 'lines', 'limits', 'limits-again', 'waking'],
  exchange: ['settling', 'claiming', 'waking', 'events'],
  fire: ['fire'],
  get: ['people', 'settling'],
  look: ['waking'],
  oldest: ['people'],
  overdue: ['leases'],
  page: ['lists', 'upkeep'],
  pause: ['people', 'waking', 'events'],
  'pause-schedule': ['schedules'],
  promote: ['claiming'],
  'promote-now': ['people'],
  'put-schedule': ['schedules'],
  recover: ['leases', 'waking', 'events'],
  release: ['leases'],
  renew: ['declarations'],
  'resume-schedule': ['schedules'],
  'retry-dead': ['upkeep', 'waking'],
  schedules: ['schedules'],
  update: ['updating'],
  'shared/by-name': ['settling'],
  'shared/full': ['adding'],
  'shared/ending': ['kept-cancelled', 'adding', 'groups-again'],
  'shared/line': ['adding', 'unique'],
  'shared/traces': ['settling', '../scripts/cancel'],
  'shared/walk': ['lists'],
};
const ofBothEngines = (names: readonly string[]) => names.map((name) => `../conformance/${name}`);

/**
 * Those of the scripts that have the mistake, which is several for one in a fragment. A mistake in flow control is in many scripts,
 * so there it is only its own spec, and those of what it decides.
 */
function specsOf(id: string): readonly string[] {
  const { file, patch } = mutantOf(id);
  const ofFlowControl = FLOW_CONTROL[file];
  if (ofFlowControl) {
    const ofScripts = OF_FLOW_CONTROL[file] ?? ALL.filter((spec) => spec === file);
    return [...ofScripts, ...ofBothEngines(ofFlowControl)];
  }
  const scripts = allScripts().flatMap(({ name, text }) => (patch(name, text) === text ? [] : [name]));
  const isOwn = (spec: string) => scripts.some((name) => spec === name || spec.startsWith(`${name}-`));
  const shared = [file, ...scripts].flatMap((name) => OF_BOTH_ENGINES[name] ?? []);
  const ofBoth = ofBothEngines([...new Set(shared)]);
  return [...ofBoth, ...ALL.filter(isOwn), ...MORE.filter((spec) => !isOwn(spec))];
}

const asked = MUTATION_ONLY === '' ? null : MUTATION_ONLY.split(',');
/** Files, or single mutants. */
const isAsked = ({ id, file }: Mutant) => !asked || asked.includes(file) || asked.includes(id);
const tried = allMutants()
  .filter(isAsked)
  .filter((_, i) => i % shards === shard)
  .map(({ id }) => id);
/** Those that an earlier process of this share has tried. */
const done = existsSync(MUTATION_OUT) ? readFileSync(MUTATION_OUT, 'utf8') : '';
const left = ['none', ...tried].filter((id) => !done.includes(`"id":${JSON.stringify(id)},`));

/** Whether a script still runs. Then its server answers no command. */
async function hasStuckScript(): Promise<boolean> {
  const admin = new Redis(inject('redisUrl'), { retryStrategy: null, commandTimeout: 3_000 });
  admin.on('error', () => {});
  const isWell = await admin.dbsize().then(
    () => true,
    () => false,
  );
  admin.disconnect();
  return !isWell;
}

/** Tests that have run already are not touched. A test that skips itself would still set up and clean up. */
function skip(task: RunnerTask): void {
  if (task.type === 'suite') for (const each of task.tasks) skip(each);
  else if (!task.result) task.mode = 'skip';
}

for (const id of left) {
  const specs = id === 'none' ? [...new Set(tried.flatMap(specsOf))] : specsOf(id);
  describe(`mutant ${id}`, async () => {
    let killedBy: string | null = null;
    beforeAll(() => {
      process.env['GODWIT_MUTANT'] = id;
    });
    beforeEach((context) => {
      context.onTestFailed(({ task }) => {
        killedBy ??= `${task.file.name === task.suite?.name ? '' : `${task.suite?.name ?? ''} > `}${task.name}`;
        let whole: RunnerTask = task;
        while (whole.suite && whole.name !== `mutant ${id}`) whole = whole.suite;
        skip(whole);
      });
    });
    afterAll(async () => {
      const isStuck = await hasStuckScript();
      if (isStuck) killedBy = 'it never ends';
      const line = {
        id,
        key: mutantOf(id).key,
        killedBy: killedBy && `specs, ${killedBy.slice(0, 90)}`,
        isStuck,
      };
      appendFileSync(MUTATION_OUT, `${JSON.stringify(line)}\n`);
      // The rest needs another server, which the next process of this share starts.
      if (isStuck) process.kill(process.pid, 'SIGKILL');
    });
    for (const spec of specs)
      await import(/* @vite-ignore */ `${FOLDER.pathname}${spec}.spec.ts?mutant=${id}`);
  });
}
