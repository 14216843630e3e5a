import { posix } from 'node:path';
import { importsOf, type Import, type SourceFile } from './sources.js';

/** The folders that the files of a folder may import from. */
interface Room {
  /** Other folders, or single files of them; `errors` is `errors.ts`. */
  readonly lib: readonly string[];
  /** Packages. `x:Name` allows only that export, `type x` only types, a final `*` any path. */
  readonly packages: readonly string[];
}

const SCHEMA = ['type @standard-schema/spec', 'ms'];
/**
 * A stage knows what a job is, which options exist, when schedules fire and what an engine can do, but no other stage.
 */
const STAGE = ['errors', 'job', 'options', 'contract'];
const NEST = [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/common/*',
  '@nestjs/core/*',
  'rxjs',
  'reflect-metadata',
];

/** The folders of lib/, from the bottom up. A new folder must be entered here. */
const ROOMS: Readonly<Record<string, Room>> = {
  errors: { lib: [], packages: [] },
  job: { lib: ['errors'], packages: [...SCHEMA, 'node:*'] },
  options: { lib: ['errors', 'job'], packages: [...SCHEMA, 'node:*', 'type ioredis'] },
  /** The contract of an engine: verbs, records and rules. And the log, which escapes text from outside. */
  contract: { lib: ['errors', 'job', 'options'], packages: ['node:*', '@nestjs/common:Logger'] },
  /** The engine on Redis. Only the wiring imports it. */
  engine: { lib: STAGE, packages: ['ioredis', 'node:*'] },
  /** The engine without Redis: all state is in the memory of one process. */
  memory: { lib: STAGE, packages: ['node:*'] },
  /**
   * When schedules fire and which jobs they add, which process adds them, and which process declares which schedules.
   */
  schedule: { lib: STAGE, packages: ['croner', 'node:*'] },
  producer: { lib: [...STAGE, 'schedule'], packages: [...SCHEMA, 'node:*'] },
  worker: { lib: STAGE, packages: [...SCHEMA, 'node:*'] },
  events: { lib: STAGE, packages: ['node:*', 'rxjs'] },
  /** Counts the work of this process, by minute. */
  history: { lib: STAGE, packages: ['node:*'] },
  inspect: { lib: STAGE, packages: [] },
  /** For queues of other programs: it knows only tasks. */
  dispatcher: {
    lib: [...STAGE, 'events/guarded-observable.ts'],
    packages: ['rxjs'],
  },
  /** The command. It runs without Nest. */
  'subpaths/cli': {
    lib: [
      ...STAGE,
      'engine',
      'producer',
      'inspect',
      'events',
      'subpaths/inspector.ts',
      'subpaths/probes/http-server.ts',
      'subpaths/probes/scale.ts',
      'subpaths/prometheus/queue-metrics.ts',
      'dispatcher/dispatch-loop.ts',
      'worker/registrar.ts',
      'schedule/words.ts',
      'subpaths/dashboard/exact-json.ts',
      'subpaths/dashboard/filter-text.ts',
      'subpaths/dashboard/server.ts',
      'subpaths/dashboard/page.ts',
      'subpaths/dashboard/redaction.ts',
      'subpaths/dashboard/options.ts',
    ],
    packages: ['node:*', 'ioredis'],
  },
  decorators: {
    lib: [...STAGE, 'producer', 'worker', 'events'],
    packages: [...SCHEMA, ...NEST],
  },
  /**
   * Finds the decorated methods of an application and calls them: handlers with guards, pipes, interceptors and
   * filters, in their scope, within the lifecycle of the application; listeners with events.
   */
  handlers: {
    lib: [...STAGE, 'schedule', 'producer', 'worker', 'events', 'decorators/metadata.ts'],
    packages: [...SCHEMA, ...NEST, 'node:*'],
  },
  /** `QueueModule`, `QueueRuntime` and the wiring of everything. */
  module: { lib: ['*'], packages: ['*'] },
  /** `godwit/producer`: it runs without Nest. */
  'subpaths/standalone': {
    lib: [...STAGE, 'engine', 'producer', 'events/job-wait.ts', 'events/queue-events.ts'],
    packages: [],
  },
  /** `godwit/inspector`: it runs without Nest. */
  'subpaths/inspector': {
    lib: ['contract', 'inspect', 'producer', 'subpaths/standalone.ts'],
    packages: [],
  },
  index: { lib: ['*'], packages: [] },
  /** `godwit/testing`. */
  'subpaths/testing': { lib: ['*'], packages: ['@nestjs/*', 'node:*'] },
  /** `godwit/bull-board`. */
  'subpaths/bull-board': { lib: [...STAGE, 'producer'], packages: ['@bull-board/api/*'] },
  /** `godwit/dashboard`: the server; its pages are in dashboard/. */
  'subpaths/dashboard': {
    lib: [
      ...STAGE,
      'producer',
      'events',
      'inspect',
      'module',
      'decorators/metadata.ts',
      'worker/registrar.ts',
    ],
    packages: ['@nestjs/common', '@nestjs/core', 'node:*', 'type rxjs'],
  },
  /** `godwit/prometheus`. */
  'subpaths/prometheus': {
    lib: [
      ...STAGE,
      'inspect',
      'worker/registrar.ts',
      'decorators/metadata.ts',
      'module/core.module.ts',
      'module/observers.ts',
      'module/queue.runtime.ts',
    ],
    packages: ['@nestjs/common', '@nestjs/core'],
  },
  /** `godwit/otel`: it runs without Nest. */
  'subpaths/otel': { lib: STAGE, packages: ['@opentelemetry/api', 'node:crypto'] },
  /** `godwit/alerts`. */
  'subpaths/alerts': {
    lib: [...STAGE, 'inspect', 'subpaths/inspector.ts', 'decorators/metadata.ts', 'module/core.module.ts'],
    packages: ['@nestjs/common', 'node:*'],
  },
  /** `godwit/probes`. */
  'subpaths/probes': {
    lib: [
      ...STAGE,
      'inspect',
      'decorators/metadata.ts',
      'module/core.module.ts',
      'module/queue.runtime.ts',
      'subpaths/prometheus/queue-metrics.ts',
    ],
    packages: ['@nestjs/common', 'node:*'],
  },
  /** `godwit/terminus`. */
  'subpaths/terminus': {
    lib: [...STAGE, 'inspect', 'producer', 'decorators/metadata.ts', 'module/queue.runtime.ts'],
    packages: ['@nestjs/common', '@nestjs/terminus'],
  },
};

/**
 * The folder of a file of lib/. A file at the top counts by its name up to the first dot; each subpath of the package
 * counts as one.
 */
function roomOf(path: string): string {
  const [, subpaths = '', first = '', isFolder] = /^(?:lib\/)?(subpaths\/)?([^/]+)(\/)?/.exec(path) ?? [];
  return subpaths + (isFolder ? first : first.split('.')[0]!);
}

/** Every import that the table does not allow, as a sentence. */
export function forbiddenImports(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    const name = roomOf(file.path);
    const room = ROOMS[name];
    if (!room) return [`${file.path} is in no room that the table in test/support/rooms.ts knows`];
    return importsOf(file)
      .map((one) => fault(file.path, name, room, one))
      .filter((text) => text !== undefined);
  });
}

function fault(path: string, name: string, room: Room, one: Import): string | undefined {
  if (one.from.startsWith('.')) return faultInside(path, name, room, one);
  if (one.from.startsWith('#'))
    return `${path} imports ${one.from}: inside lib, files are imported by relative path`;
  const deep = /^@nestjs\/[^/]+\/(.+)$/.exec(one.from)?.[1];
  if (deep?.startsWith('internal')) return `${path} imports ${one.from}, which Nest 11 does not have`;
  if (deep && !deep.endsWith('.js'))
    return `${path} imports ${one.from} without .js, which Nest 11 cannot resolve`;
  return room.packages.some((rule) => allows(rule, one))
    ? undefined
    : `${path} imports ${describe(one)}: ${name} may import ${list(room.packages)}`;
}

function faultInside(path: string, name: string, room: Room, one: Import): string | undefined {
  if (!one.from.endsWith('.js')) return `${path} imports ${one.from}: relative imports end in .js`;
  const target = targetOf(path, one);
  if (target === 'lib/index.ts') return `${path} imports the barrel; import the file itself`;
  const targetRoom = roomOf(target);
  const inside = target.replace(/^lib\//, '');
  const allowed =
    targetRoom === name || room.lib.some((rule) => rule === '*' || rule === targetRoom || rule === inside);
  return allowed ? undefined : `${path} imports ${one.from}: ${name} may import ${list(room.lib)} of lib`;
}

function allows(rule: string, one: Import): boolean {
  const typesOnly = rule.startsWith('type ');
  if (typesOnly && !one.typeOnly) return false;
  const at = rule.startsWith('node:') ? -1 : rule.indexOf(':');
  const name = (at === -1 ? rule : rule.slice(0, at)).replace(/^type /, '');
  if (at !== -1 && !(one.names.length > 0 && one.names.every((found) => found === rule.slice(at + 1))))
    return false;
  return name.endsWith('*') ? one.from.startsWith(name.slice(0, -1)) : one.from === name;
}

function describe({ from, typeOnly, names }: Import): string {
  return `${typeOnly ? 'types of ' : ''}${from}${names.length > 0 ? ` (${names.join(', ')})` : ''}`;
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.join(', ');
}

/** The file that a relative import names: `./keys.js` in `lib/engine/x.ts` is `lib/engine/keys.ts`. */
function targetOf(path: string, one: Import): string {
  return posix.join(posix.dirname(path), one.from).replace(/\.js$/, '.ts');
}

/** Cycles of imports, each as `a -> b -> a`. Imports of types count, because a reader has to follow them too. */
export function importCycles(files: readonly SourceFile[]): string[] {
  const edges = new Map(
    files.map((file) => [
      file.path,
      importsOf(file)
        .filter(({ from }) => from.startsWith('.'))
        .map((one) => targetOf(file.path, one)),
    ]),
  );
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: string[]): void => {
    const at = trail.indexOf(path);
    if (at !== -1) cycles.push([...trail.slice(at), path].join(' -> '));
    if (at !== -1 || done.has(path)) return;
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  return cycles;
}
