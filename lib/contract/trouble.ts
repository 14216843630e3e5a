import { RedisRefusedError, RedisUnavailableError } from '../errors.js';
import { shortTime } from '../job/text.js';
import type { Log } from './log.js';

/** Something that failed and succeeded in turn is logged at most once in this time. */
const SAME_LINE_MS = 10_000;

/**
 * Work that is tried again and again while Redis refuses it or is away. Logs one line when it begins to fail, another one if the kind of
 * the error changes, and one when it succeeds again.
 */
export class Trouble {
  /** When the work began to fail. */
  private since: number | null = null;
  /** The kinds of error that were logged since then. */
  private readonly kinds = new Set<string>();
  private readonly loggedAt = new Map<string, number>();
  private isShown = false;

  constructor(
    private readonly logger: Log,
    /** `queue 'email': jobs cannot be claimed now`. */
    private readonly fails: string,
    /** `queue 'email': jobs are claimed again`. */
    private readonly works: string,
  ) {}

  failed(error: Error): void {
    const now = performance.now();
    this.since ??= now;
    const kind = error instanceof RedisRefusedError ? error.reply : error.name;
    if (this.kinds.has(kind) || now - (this.loggedAt.get(kind) ?? -Infinity) < SAME_LINE_MS) return;
    this.kinds.add(kind);
    this.loggedAt.set(kind, now);
    // The process logs once that Redis is unreachable. Each kind of work only logs it at debug level.
    const isAway = error instanceof RedisUnavailableError;
    this.isShown ||= !isAway;
    this.logger[isAway ? 'debug' : 'error'](`${this.fails}, retrying: ${error.message}`);
  }

  ended(): void {
    if (this.since === null) return;
    const took = shortTime(performance.now() - this.since);
    if (this.kinds.size > 0) this.logger[this.isShown ? 'log' : 'debug'](`${this.works}, after ${took}`);
    this.since = null;
    this.kinds.clear();
    this.isShown = false;
  }
}
