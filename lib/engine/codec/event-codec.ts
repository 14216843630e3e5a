import type { FailureRecord } from '../../job/outcome.js';
import { parseOrNull } from '../../job/text.js';
import { EVENT_TYPES, type EventType, type QueueEventBatch, type RawEvent } from '../../contract/engine.js';
import type { Value } from '../script.js';

/**
 * Writes the events of one script call as columns of one stream entry. A field named after an event type holds the ids, one per
 * line, and begins a group. `<type>.<column>` holds one value per line, or a single value for all. `lost` and `skip` name ids
 * whose move did not happen: jobs settled without the lease in the groups before `lost`, and jobs that were added although they
 * existed.
 */
export class EventColumns {
  private readonly ids: string[] = [];
  /** There are only a few columns, so a list is faster than a map. */
  private readonly columns: [name: string, values: Value[]][] = [];

  constructor(private readonly type: EventType) {}

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

  /** Appends the fields of this group to a list. Without `withIds` the script fills in the ids. */
  writeTo(fields: Value[], withIds: boolean): void {
    if (this.ids.length > 0) writeGroup(fields, this.type, withIds ? this.ids : [''], this.columns);
  }
}

/** Appends the fields of a group with these columns. */
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

/** A single value if all are equal, else one per line. */
export function fold(values: readonly Value[]): Value {
  const first = values[0]!;
  for (let i = 1; i < values.length; i++) if (values[i] !== first) return values.join('\n');
  return first;
}

const TYPES: ReadonlySet<string> = new Set(EVENT_TYPES);

interface Group {
  /** A newer version may have written a type that this version does not know. */
  readonly type: string;
  readonly ids: readonly string[];
  readonly columns: Map<string, readonly string[]>;
}

/**
 * Reads one stream entry. A newer version may have written it, so unknown columns and groups of unknown types are skipped. Events
 * of skipped groups still count in the numbering. An entry written by hand gives no events, and readers see that some are
 * missing.
 */
export function readEntry(queue: string, entryId: string, fields: readonly string[]): QueueEventBatch {
  const last = Number(entryId.slice(0, entryId.indexOf('-')));
  let at = 0;
  let count = 0;
  let lost: ReadonlySet<string> = new Set();
  /** The number of groups before `lost`. In later groups of the same exchange a lost job may appear again. */
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
  // There are more ids than events, so an id contains a line break.
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

/** Returns a function that reads single events of a group. Values that all events share are read once. */
function readerOf({ type, ids, columns }: Group): (number: number, i: number) => RawEvent {
  const column = (name: string): ValueOf => {
    const values = columns.get(name);
    return values === undefined ? '' : values.length === 1 ? values[0]! : values;
  };
  const [name, attempt, us, delay] = [column('name'), column('attempt'), column('us'), column('delay')];
  const [reason, error, progress] = [
    column(type === 'breakerOpened' || type === 'breakerClosed' ? 'limit' : 'reason'),
    column('error'),
    column(type === 'published' ? 'payload' : type === 'completed' ? 'result' : 'progress'),
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

/** 0 if the text is not a count. */
function countIn(text: string): number {
  const count = Number(text);
  return Number.isSafeInteger(count) && count >= 0 ? count : 0;
}

function cell(values: ValueOf, i: number): string {
  return typeof values === 'string' ? values : (values[i] ?? '');
}
