import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/cleanup.js';

interface Line {
  /** A run began (S), or its handler ended (E). */
  readonly what: 'S' | 'E';
  readonly id: string;
  readonly pid: number;
}

/** The acts of processes, one file for each, outside of Redis. Tests compare them with the reports of the queue. */
export class Ledger {
  private readonly dir = temporaryFolder();
  private files = 0;

  /** A file for one more process. */
  file(): string {
    this.files += 1;
    return join(this.dir, String(this.files));
  }

  lines(what?: Line['what']): Line[] {
    const texts = readdirSync(this.dir).map((name) => readFileSync(join(this.dir, name), 'utf8'));
    const lines = texts.flatMap((text) => text.split('\n').slice(0, -1)).map(parse);
    return what === undefined ? lines : lines.filter((line) => line.what === what);
  }

  /** How often each job began, or ended. */
  times(what: Line['what']): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { id } of this.lines(what)) counts.set(id, (counts.get(id) ?? 0) + 1);
    return counts;
  }
}

function parse(line: string): Line {
  const [what, id, pid] = line.split(' ');
  return { what: what as Line['what'], id: id!, pid: Number(pid) };
}

/** Each id once. This is the ledger of a queue that lost nothing and ran nothing twice. */
export function onceEach(ids: readonly string[]): Map<string, number> {
  return new Map(ids.map((id) => [id, 1]));
}
