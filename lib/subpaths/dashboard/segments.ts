/**
 * A name as a segment of a path, and back. A browser resolves `.` and `..` in every address, encoded or not, so they get a `~`
 * before them. Without it, an action on the group `..` would reach the queue.
 */

export function encodeSegment(name: string): string {
  return `${/^~*\.{1,2}$/.test(name) ? '~' : ''}${encodeURIComponent(name)}`;
}

/** @throws {URIError} if a % encodes nothing. */
export function decodeSegment(segment: string): string {
  return decodeURIComponent(segment).replace(/^~(?=~*\.{1,2}$)/, '');
}
