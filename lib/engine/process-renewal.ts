import { processKeys } from './keys.js';
import type { Value } from './script.js';
import { register } from './scripts/register.js';

/** Who is gone is remembered for so long, for whoever asks whose jobs were lost. */
const REMEMBER_MS = 600_000;
/** Longer than the longest lease, so that the keys of a system that is alive never end, and those of a dead one do. */
const KEEP_MS = 4 * 3_600_000;

/** What `EVALSHA` takes for one registration; without `info` it is as it was. */
export function encodeRegistration(prefix: string, process: string, info: string, leaseMs: number): Value[] {
  const args = { process, info, leaseMs, rememberMs: REMEMBER_MS, keepMs: KEEP_MS };
  return register.encode(processKeys(prefix), args, {});
}

/**
 * Keeps this process registered: in full when it has something new to say, and now and then; else it only says that it lives,
 * which costs next to nothing. Renewed each half lease, it bears that one renewal is lost.
 */
export class ProcessRenewal {
  private process = '';
  private info = '';
  private written = '';
  private writtenAt = -Infinity;
  private renewedAt = -Infinity;
  private running: Promise<void> | null = null;
  private ended = false;

  constructor(
    private readonly prefix: string,
    private readonly leaseMs: number,
    private readonly run: (script: typeof register, args: Value[]) => Promise<unknown>,
  ) {}

  /** From now on it says this. */
  show(process: string, info: string): void {
    this.process = process;
    this.info = info;
  }

  /** To be called a few times in each lease; does nothing where that is not needed yet. Never rejects. */
  async renew(): Promise<void> {
    if (this.ended) return;
    this.running ??= this.renewOnce().finally(() => (this.running = null));
    await this.running;
  }

  /** Nothing is renewed any more; resolves when nothing of it is on its way. */
  async end(): Promise<void> {
    this.ended = true;
    await this.running;
  }

  /** There is a new connection, perhaps to another server: what was said on the one before may be lost. */
  forget(): void {
    this.written = '';
  }

  private async renewOnce(): Promise<void> {
    const now = performance.now();
    const { info, written } = this;
    const isNew = info !== written || now - this.writtenAt > KEEP_MS / 4;
    // Beats come a little early or late.
    if (info === '' || (!isNew && now - this.renewedAt < this.leaseMs * 0.45)) return;
    try {
      const args = encodeRegistration(this.prefix, this.process, isNew ? info : '', this.leaseMs);
      const answer = await this.run(register, args);
      this.renewedAt = now;
      if (isNew) {
        this.written = info;
        this.writtenAt = now;
      } else if (answer === 'unknown') {
        this.written = '';
        await this.renewOnce();
      }
    } catch {
      // The link has told; the next beat comes soon.
    }
  }
}
