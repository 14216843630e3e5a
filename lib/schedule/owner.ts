/*
 * The record of a schedule that comes from code begins with a line that names its owner. One that a person made has none, so
 * that nothing but a person ever changes or removes it. JSON holds no line end, and no owner begins with a brace.
 */

/** The record as the code of this owner writes it. */
export function ownedRecord(owner: string, record: string): string {
  return `${owner}\n${record}`;
}

/** Whose code a record comes from; null where a person made it. */
export function ownerOf(record: string): string | null {
  const end = record.indexOf('\n');
  return end === -1 ? null : record.slice(0, end);
}

/** The record without its owner. */
export function withoutOwner(record: string): string {
  return record.slice(record.indexOf('\n') + 1);
}
