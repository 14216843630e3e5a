import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { EVENT_TYPES } from '#lib/index.js';
import { readPage } from '../support/page-code.js';
import { parse, sourcesIn } from '../support/sources.js';

/** Interfaces of options whose members are groups. Their fields have rows of their own, as `lease.duration`. */
const GROUPS: Readonly<Record<string, string>> = {
  lease: 'LeaseOptions',
  shutdown: 'ShutdownOptions',
  logs: 'LogsOptions',
  schedules: 'ScheduleOwnerOptions',
  dead: 'DeadOptions',
  progress: 'ProgressOptions',
  completed: 'CompletedOptions',
  upkeep: 'UpkeepOptions',
  enhancers: 'EnhancerOptions',
};

describe('the reference of options', () => {
  const page = readPage('docs/reference/options.md');
  const tables = [...page.matchAll(/^## .*: `(\w+)`$/gm)].map(([, name]) => name!);

  it('has a table for each kind', () => {
    expect(tables).toEqual([
      'QueueModuleOptions',
      'QueueOptions',
      'JobDefaults',
      'JobOptions',
      'UniqueOptions',
      'HandlerPolicy',
      'BatchOptions',
      'ProcessorOptions',
      'OnQueueEventOptions',
      'OnJobOptions',
    ]);
  });

  it.each(tables)('has every option of %s, and no other', (name) => {
    const isRoot = name === 'QueueModuleOptions';
    const expected = membersOf(name).flatMap((member) => {
      const group = isRoot ? GROUPS[member] : undefined;
      if (isRoot && member === 'events')
        return ['events', ...['max', 'age', 'maxBytes', 'results'].map((field) => `events.${field}`)];
      if (isRoot && member === 'log')
        return ['log', ...['failures', 'deaths', 'start', 'stop'].map((field) => `log.${field}`)];
      return group === undefined ? [member] : membersOf(group).map((field) => `${member}.${field}`);
    });
    expect(rowsUnder(page, `: \`${name}\``).toSorted(), 'the rows of docs/reference/options.md').toEqual(
      expected.toSorted(),
    );
  });
});

describe('the reference of events', () => {
  it('has every type, and no other', () => {
    const rows = rowsUnder(readPage('docs/reference/events.md'), 'Event types');
    expect(rows.toSorted(), 'the rows of docs/reference/events.md').toEqual([...EVENT_TYPES].toSorted());
  });
});

describe('the contexts of the log', () => {
  it('are all in docs/operating/monitoring.md, and no other', () => {
    const used = sourcesIn('lib', ['.ts']).flatMap(({ text }) =>
      [...text.matchAll(/new Log\('(\w+)'\)/g)].map(([, context]) => context!),
    );
    expect(rowsUnder(readPage('docs/operating/monitoring.md'), 'The log').toSorted()).toEqual(
      [...new Set(used)].toSorted(),
    );
  });
});

const interfaces = new Map(
  sourcesIn('lib', ['.ts']).flatMap((file) =>
    parse(file)
      .statements.filter(ts.isInterfaceDeclaration)
      .map((statement) => [statement.name.text, statement] as const),
  ),
);

/** The members an interface declares itself. */
function membersOf(name: string): string[] {
  const found = interfaces.get(name);
  if (!found) throw new Error(`lib/ has no interface ${name}`);
  return found.members.filter(ts.isPropertySignature).map((member) => member.name.getText());
}

/** The text between backticks in the first cells of the table under a heading. */
function rowsUnder(page: string, heading: string): string[] {
  const lines = page.split('\n');
  const from = lines.findIndex((line) => line.startsWith('#') && line.endsWith(heading));
  const rest = lines.slice(from + 1);
  const end = rest.findIndex((line) => line.startsWith('## '));
  return rest
    .slice(0, end === -1 ? undefined : end)
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...line.split(' | ')[0]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));
}
