/** Splits what a client sends to Redis into whole requests, so that a proxy can act between two of them. */
export class RequestSplitter {
  private rest: Buffer[] = [];
  private size = 0;
  /** The next request needs at least this many bytes; so large requests are not parsed again with each chunk. */
  private least = 1;

  /** The requests that this chunk completes, byte for byte as they came. */
  push(chunk: Buffer): Buffer[] {
    this.rest.push(chunk);
    this.size += chunk.length;
    const requests: Buffer[] = [];
    while (this.size >= this.least) {
      const bytes = this.rest.length === 1 ? this.rest[0]! : Buffer.concat(this.rest);
      const end = walk(bytes, () => undefined);
      this.least = end < 0 ? -end : 1;
      if (end > 0) requests.push(bytes.subarray(0, end));
      this.rest = [bytes.subarray(Math.max(0, end))];
      this.size = this.rest[0]!.length;
    }
    return requests;
  }
}

/** Which request matches: a part of its bytes, or a test on its words (`['EVALSHA', sha, …]`). */
export type Match = string | ((words: readonly string[]) => boolean);

export function matches(request: Buffer, match: Match): boolean {
  return typeof match === 'string' ? request.includes(match) : match(wordsOf(request));
}

/** `['SET', 'key', 'value']` in the form in which a client sends it. */
export function encodeRequest(words: readonly string[]): Buffer {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return Buffer.from(`*${words.length}\r\n${parts.join('')}`);
}

function wordsOf(request: Buffer): string[] {
  const words: string[] = [];
  walk(request, (from, to) => words.push(request.toString('utf8', from, to)));
  return words;
}

/**
 * Visits each word of the request at the start of `bytes`. Returns where the request ends; if it is incomplete, a
 * negative number: the bytes that it has at least.
 */
function walk(bytes: Buffer, visit: (from: number, to: number) => void): number {
  const head = lineEnd(bytes, 0);
  if (head === undefined) return -bytes.length - 1;
  // A line that is not an array is an inline command, a whole request.
  if (bytes[0] !== 0x2a) return head;
  let at = head;
  for (let left = numberAt(bytes, 0); left > 0; left--) {
    const from = lineEnd(bytes, at);
    if (from === undefined) return -bytes.length - 1;
    const to = from + numberAt(bytes, at);
    if (to + 2 > bytes.length) return -to - 2;
    visit(from, to);
    at = to + 2;
  }
  return at;
}

function lineEnd(bytes: Buffer, from: number): number | undefined {
  const at = bytes.indexOf('\r\n', from);
  return at === -1 ? undefined : at + 2;
}

/** The number behind the type byte at `at`: 12 in `$12\r\n`. */
function numberAt(bytes: Buffer, at: number): number {
  return Number.parseInt(bytes.toString('latin1', at + 1, at + 21), 10);
}
