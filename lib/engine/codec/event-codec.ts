import type { FailureRecord } from '../../job/outcome.js';
import { EVENT_TYPES, type EventType, type QueueEventBatch, type RawEvent } from '../../contract/engine.js';
import type { Value } from '../script.js';

/**
 * How the events of one script call stand in one stream entry: columns, not rows. A field named by the type holds the ids,
 * one per line, and opens a group; `<type>.<column>` holds one value per line, or a single one that stands for all.
 * `lost` and `skip` name ids whose move did not happen: settled without the lease, in the groups before it, or added although
 * there already.
 */
export class EventColumns {
  private readonly ids: string[] = [];
  /** A few: looking through them takes less than a map of them. */
  private readonly columns: [name: string, values: Value[]][] = [];

  constructor(private readonly type: EventType) {}

  get size(): number {
    return this.ids.length;
  }

  add(id: string): this {
    this.ids.push(id);
    return this;
  }

  with(column: string, value: Value): this {
    for (const [name, values] of this.columns) {
      if (name !== column) continue;
      values.push(value);
      return this;
    }
    this.columns.push([column, [value]]);
    return this;
  }

  /** Appends the fields of this group to a list of fields and values; without ids where the script puts them in. */
  writeTo(fields: Value[], withIds = true): void {
    if (this.ids.length > 0) writeGroup(fields, this.type, withIds ? this.ids : [''], this.columns);
  }
}

/** Appends the fields of a group whose columns are there already. */
export function writeGroup(
  fields: Value[],
  type: EventType,
  ids: readonly string[],
  columns: Iterable<readonly [string, readonly Value[]]>,
): void {
  if (ids.length === 0) return;
  fields.push(type, ids.join('\n'));
  for (const [column, values] of columns) fields.push(`${type}.${column}`, fold(values));
}

/** One value where all are the same, a line for each otherwise. */
export function fold(values: readonly Value[]): Value {
  const first = values[0]!;
  for (let i = 1; i < values.length; i++) if (values[i] !== first) return values.join('\n');
  return first;
}

const TYPES: ReadonlySet<string> = new Set(EVENT_TYPES);

interface Group {
  /** One that a newer version has written may have a type that this one does not know. */
  readonly type: string;
  readonly ids: readonly string[];
  readonly columns: Map<string, readonly string[]>;
}

/**
 * Reads one stream entry back. A newer version may have written it: columns that are not known are left alone, and so are groups
 * of an unknown type, whose events have their numbers all the same. Of an entry that was written
 * by hand there are no events; its readers are told that some are missing.
 */
export function readEntry(queue: string, entryId: string, fields: readonly string[]): QueueEventBatch {
  const last = Number(entryId.slice(0, entryId.indexOf('-')));
  let at = 0;
  let count = 0;
  let lost: ReadonlySet<string> = new Set();
  /** The same exchange may go on with a job that was lost: these groups are what was settled. */
  let settledGroups = 0;
  let skip: ReadonlySet<string> = new Set();
  const groups: Group[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const field = fields[i]!;
    const value = fields[i + 1]!;
    if (field === 'at') at = countIn(value);
    else if (field === 'n') count = countIn(value);
    else if (field === 'lost') {
      lost = new Set(value.split('\n'));
      settledGroups = groups.length;
    } else if (field === 'skip') skip = new Set(value.split('\n'));
    else if (!field.includes('.')) groups.push({ type: field, ids: value.split('\n'), columns: new Map() });
    else {
      const group = groups.at(-1);
      if (group && field.startsWith(`${group.type}.`)) {
        group.columns.set(field.slice(group.type.length + 1), value.split('\n'));
      }
    }
  }
  const events: RawEvent[] = [];
  const written = groups.reduce((sum, { ids }) => sum + ids.length, 0);
  // An id with a line break reads like two.
  if (written > count) return { queue, first: last - count + 1, last, at, events };
  let number = last - count;
  for (const [place, group] of groups.entries()) {
    const settled = place < settledGroups;
    const eventOf = TYPES.has(group.type) ? readerOf(group) : null;
    for (let i = 0; i < group.ids.length; i++) {
      const id = group.ids[i]!;
      number += 1;
      if (eventOf && !skip.has(id) && !(settled && lost.has(id))) events.push(eventOf(number, i));
    }
  }
  return { queue, first: last - count + 1, last, at, events };
}

type ValueOf = string | readonly string[];

/** Reads the events of a group: what all have in common is read once. */
function readerOf({ type, ids, columns }: Group): (number: number, i: number) => RawEvent {
  const column = (name: string): ValueOf => {
    const values = columns.get(name);
    return values === undefined ? '' : values.length === 1 ? values[0]! : values;
  };
  const [name, attempt, us, delay] = [column('name'), column('attempt'), column('us'), column('delay')];
  const [reason, error, progress] = [
    column('reason'),
    column('error'),
    column(type === 'published' ? 'payload' : 'progress'),
  ];
  return (number, i) => ({
    number,
    type: type as EventType,
    id: ids[i]!,
    name: cell(name, i),
    attempt: countIn(cell(attempt, i) || '1'),
    durationUs: countIn(cell(us, i)),
    delayMs: countIn(cell(delay, i)),
    reason: cell(reason, i),
    error: parseOrNull(cell(error, i)) as FailureRecord | null,
    progress: cell(progress, i) || null,
  });
}

/** 0 where it is no count. */
function countIn(text: string): number {
  const count = Number(text);
  return Number.isSafeInteger(count) && count >= 0 ? count : 0;
}

function cell(values: ValueOf, i: number): string {
  return typeof values === 'string' ? values : (values[i] ?? '');
}

function parseOrNull(text: string): unknown {
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
