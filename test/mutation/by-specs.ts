import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe } from 'vitest';

// What the model has left over, against the specs of the scripts: each spec is loaded once for each mutant, into a suite of its
// own, which ends with the first test that fails. Writes a line for each mutant to a file.
const { MUTATION_IDS = '', MUTATION_OUT = '/dev/stdout', MUTATION_SHARD = '0/1' } = process.env;
const [shard, shards] = MUTATION_SHARD.split('/').map(Number) as [number, number];

/** It loads the scripts under their own names, which a mutant does not have. */
const NOT_FOR_MUTANTS = 'all-scripts';
/** For what several scripts share: the specs that look at it most closely. */
const OF_SHARED: Readonly<Record<string, readonly string[]>> = {
  bell: ['pause', 'release', 'enqueue', 'exchange-settle'],
  bodies: ['letters', 'exchange-claim', 'claim', 'remove', 'audit', 'events'],
  'by-name': ['stats'],
  claimed: ['claim', 'exchange-claim', 'events'],
  clock: ['beat'],
  count: ['exchange', 'recover', 'audit', 'repair'],
  dead: ['dead-page', 'retry-dead', 'clean'],
  'drop-schedule': ['remove-schedule', 'declare'],
  ending: [
    'exchange-settle',
    'recover',
    'cancel',
    'trim',
    'events',
    'enqueue',
    'fire',
    'remove',
    'retry-dead',
  ],
  entries: ['trim', 'overgrown'],
  event: ['events'],
  gate: ['pause', 'exchange-claim', 'claim'],
  hold: ['exchange-settle', 'exchange', 'recover', 'release', 'beat'],
  lane: ['enqueue', 'enqueue-plain', 'enqueue-begin'],
  line: [
    'promote',
    'promote-now',
    'enqueue',
    'release',
    'exchange-claim',
    'exchange-settle',
    'letters',
    'cancel',
    'remove',
    'clean',
  ],
  named: ['undeclared-workers', 'audit'],
  names: ['events', 'remove', 'recover'],
  'next-schedule': ['due-schedules', 'fire'],
  'next-time': ['put-schedule', 'fire'],
  prune: ['renew', 'declare'],
  'schedule-state': ['pause-schedule', 'fire'],
  'schedule-view': ['schedules', 'due-schedules'],
  settle: ['exchange-settle', 'exchange'],
  'settled-names': ['stats'],
  tally: ['exchange-settle'],
  traces: ['remove', 'retry-dead', 'exchange', 'exchange-settle', 'recover', 'cancel'],
  types: ['remove', 'audit'],
  unreadable: ['adopt', 'exchange-claim'],
  walk: ['dead-page', 'clean'],
  'write-schedule': ['put-schedule', 'declare'],
};

const FOLDER = new URL('../scripts/', import.meta.url);
const ALL = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.spec.ts'))
  .map((name) => name.slice(0, -'.spec.ts'.length))
  .filter((name) => name !== NOT_FOR_MUTANTS);

function specsOf(id: string): readonly string[] {
  if (id === 'none') return ALL;
  const [file = ''] = id.split(':');
  if (!file.startsWith('shared/')) {
    const own = ALL.filter((name) => name === file || (file === 'exchange' && name.startsWith('exchange-')));
    const more = ['audit', 'cancel', 'counts', 'get', 'obliterate', 'remove', 'repair'].includes(file)
      ? ['undeclared-workers']
      : [];
    // What an exchange tells of schedules stands with those.
    if (file === 'exchange') own.push('due-schedules');
    return [...more, ...own, 'events'];
  }
  const specs = OF_SHARED[file.slice('shared/'.length)];
  if (!specs) throw new Error(`say which specs look at ${file}.lua`);
  return specs;
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
