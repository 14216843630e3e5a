/**
 * A name as a segment of a path, and back. A browser resolves `.` and `..` in every address, encoded or not, so they get a `~`
 * before them: with it, an act on the group `..` does not reach the queue.
 */

export function encodeSegment(name: string): string {
  return `${/^~*\.{1,2}$/.test(name) ? '~' : ''}${encodeURIComponent(name)}`;
}

/** @throws {URIError} if a % encodes nothing. */
export function decodeSegment(segment: string): string {
  return decodeURIComponent(segment).replace(/^~(?=~*\.{1,2}$)/, '');
}
