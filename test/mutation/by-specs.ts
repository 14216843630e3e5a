import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe } from 'vitest';
import '#lib/engine/redis-engine.js';
import { allScripts } from '#lib/engine/script.js';
import { FLOW_CONTROL, mutantOf } from './mutants.js';

// What the model has left over, against the specs of the scripts: each spec is loaded once for each mutant, into a suite of its
// own, which ends with the first test that fails. Writes a line for each mutant to a file.
const { MUTATION_IDS = '', MUTATION_OUT = '/dev/stdout', MUTATION_SHARD = '0/1' } = process.env;
const [shard, shards] = MUTATION_SHARD.split('/').map(Number) as [number, number];

const FOLDER = new URL('../scripts/', import.meta.url);
/** `all-scripts` loads the scripts under their own names, which a mutant does not have. */
const ALL = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.spec.ts') && name !== 'all-scripts.spec.ts')
  .map((name) => name.slice(0, -'.spec.ts'.length));
/** Specs that look at several scripts; what an exchange tells of schedules is in `due-schedules`. */
const MORE = ['letters', 'undeclared-workers', 'events', 'due-schedules', 'planted'];
const ofBothEngines = (names: readonly string[]) => names.map((name) => `../conformance/${name}`);

/**
 * Those of the scripts that have the mistake, which is several for one in a fragment. A mistake in flow control is in many scripts,
 * so there it is only its own spec, and those of what it decides.
 */
function specsOf(id: string): readonly string[] {
  if (id === 'none') return [...ALL, ...ofBothEngines([...new Set(Object.values(FLOW_CONTROL).flat())])];
  const { file, patch } = mutantOf(id);
  const ofFlowControl = FLOW_CONTROL[file];
  if (ofFlowControl) return [...ofBothEngines(ofFlowControl), ...ALL.filter((spec) => spec === file)];
  const scripts = allScripts().flatMap(({ name, text }) => (patch(name, text) === text ? [] : [name]));
  const isOwn = (spec: string) => scripts.some((name) => spec === name || spec.startsWith(`${name}-`));
  return [...ALL.filter(isOwn), ...MORE.filter((spec) => !isOwn(spec))];
}

const ids = readFileSync(MUTATION_IDS, 'utf8')
  .split('\n')
  .filter(Boolean)
  .filter((_, i) => i % shards === shard);

for (const id of ids) {
  describe(`mutant ${id}`, async () => {
    let killedBy: string | null = null;
    beforeAll(() => {
      process.env['GODWIT_MUTANT'] = id;
    });
    beforeEach((context) => {
      if (killedBy !== null) context.skip();
      context.onTestFailed(({ task }) => {
        killedBy ??= `${task.file.name === task.suite?.name ? '' : `${task.suite?.name ?? ''} > `}${task.name}`;
      });
    });
    afterAll(() => {
      appendFileSync(
        MUTATION_OUT,
        `${JSON.stringify({ id, killedBy: killedBy && `specs, ${killedBy.slice(0, 90)}` })}\n`,
      );
    });
    for (const spec of specsOf(id))
      await import(/* @vite-ignore */ `${FOLDER.pathname}${spec}.spec.ts?mutant=${id}`);
  });
}
