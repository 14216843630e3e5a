/** Cuts what a client sends to Redis into whole requests, so that a proxy can act between two of them. */
export class RequestSplitter {
  private rest: Buffer = Buffer.alloc(0);

  /** The requests that are complete with this chunk, byte for byte as they came. */
  push(chunk: Buffer): Buffer[] {
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    const requests: Buffer[] = [];
    for (let end = endOfRequest(this.rest); end !== undefined; end = endOfRequest(this.rest)) {
      requests.push(this.rest.subarray(0, end));
      this.rest = this.rest.subarray(end);
    }
    return requests;
  }
}

/** What a request must hold or be: a piece of its bytes, or a test on its words (`['EVALSHA', sha, …]`). */
export type Match = string | ((words: readonly string[]) => boolean);

export function matches(request: Buffer, match: Match): boolean {
  return typeof match === 'string' ? request.includes(match) : match(wordsOf(request));
}

/** `['SET', 'key', 'value']` as a client sends it. */
export function encodeRequest(words: readonly string[]): Buffer {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return Buffer.from(`*${words.length}\r\n${parts.join('')}`);
}

function wordsOf(request: Buffer): string[] {
  const words: string[] = [];
  walk(request, (from, to) => words.push(request.toString('utf8', from, to)));
  return words;
}

function endOfRequest(bytes: Buffer): number | undefined {
  return walk(bytes, () => undefined);
}

/** Visits each word of the request at the start of `bytes`; answers where it ends, or undefined if it is not all there. */
function walk(bytes: Buffer, visit: (from: number, to: number) => void): number | undefined {
  const head = lineEnd(bytes, 0);
  if (head === undefined) return undefined;
  // A line that is no array is an old inline command, a request by itself.
  if (bytes[0] !== 0x2a) return head;
  let at = head;
  for (let left = numberAt(bytes, 0); left > 0; left--) {
    const from = lineEnd(bytes, at);
    if (from === undefined) return undefined;
    const to = from + numberAt(bytes, at);
    if (to + 2 > bytes.length) return undefined;
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
