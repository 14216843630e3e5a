import type { ProcessRecord } from '../contract/process-verbs.js';
import { RULES } from '../job/rules.js';
import { encodeProcess } from './codec/process-codec.js';
import { processKeys, type ProcessKeys } from './keys.js';
import type { Value } from './script.js';
import { register } from './scripts/processes.js';

/** Expiry of the keys: longer than the longest lease, so they never expire while processes run. */
const KEEP_MS = 4 * 3_600_000;

/** A record in its stored form, and the field of it that the script reads. */
export interface ShownRecord {
  readonly process: string;
  readonly info: string;
  /** Id of the last order that the process obeyed; may be empty. */
  readonly obeyed: string;
}

export function toShown(record: ProcessRecord): ShownRecord {
  return { process: record.id, info: encodeProcess(record), obeyed: record.obeyed ?? '' };
}

/** The arguments of `EVALSHA` for one registration. An empty `info` leaves the record as it is. */
export function encodeRegistration(
  keys: ProcessKeys,
  { process, info, obeyed }: ShownRecord,
  leaseMs: number,
): Value[] {
  const args = { process, info, obeyed, leaseMs, rememberMs: RULES.rememberMs, keepMs: KEEP_MS };
  return register.encode(keys, args, {});
}

/** Decides from the answers to the registrations of a process whether the server has lost its data. */
export class LossCheck {
  /** The process whose record was written last. */
  private written = '';

  /** Whether the server no longer had the record, which was written before. */
  hasLostData(process: string, kind: ReturnType<typeof register.reply>['kind']): boolean {
    if (kind === 'unknown') return false;
    const isLost = kind === 'added' && process === this.written;
    this.written = process;
    return isLost;
  }
}

/**
 * Keeps this process registered. The full record is written when it has changed, and from time to time. Otherwise only its expiry
 * is renewed, which costs little. It is renewed every half lease, so one renewal may be lost.
 */
export class ProcessRenewal {
  private shown: ShownRecord = { process: '', info: '', obeyed: '' };
  private written = '';
  private writtenAt = -Infinity;
  private renewedAt = -Infinity;
  private readonly loss = new LossCheck();
  private running: Promise<void> | null = null;
  private ended = false;

  constructor(
    private readonly prefix: string,
    private readonly leaseMs: number,
    private readonly run: (script: typeof register, args: Value[]) => Promise<unknown>,
    /** Called with the orders to this process, if there are any. */
    private readonly ordered: (orders: string) => void,
    /** Called when the server had lost its data. The record is there again. */
    private readonly lost: () => void,
  ) {}

  /** Sets the record to write. */
  show(record: ShownRecord): void {
    this.shown = record;
  }

  /** The event loop of the process has been blocked for this long, so the process cannot say it itself. */
  showBlocked(ms: number): void {
    const { info } = this.shown;
    if (info === '') return;
    const record = JSON.parse(info) as ProcessRecord;
    if ((record.blockedMs ?? 0) >= ms) return;
    this.shown = { ...this.shown, info: JSON.stringify({ ...record, blockedMs: Math.round(ms) }) };
  }

  /** Called a few times in each lease. Does nothing if no renewal is due. Never rejects. */
  async renew(): Promise<void> {
    if (this.ended) return;
    this.running ??= this.renewOnce().finally(() => (this.running = null));
    await this.running;
  }

  /** Stops the renewal. Resolves when no call is in flight. */
  async end(): Promise<void> {
    this.ended = true;
    await this.running;
  }

  /** Called for a new connection. It may lead to another server, which may not have the record. */
  forget(): void {
    this.written = '';
  }

  private async renewOnce(): Promise<void> {
    const now = performance.now();
    const { shown, written } = this;
    const { info } = shown;
    const isNew = info !== written || now - this.writtenAt > KEEP_MS / 4;
    // Heartbeats come a little early or late.
    if (info === '' || (!isNew && now - this.renewedAt < this.leaseMs * 0.45)) return;
    try {
      const args = encodeRegistration(
        processKeys(this.prefix),
        isNew ? shown : { ...shown, info: '' },
        this.leaseMs,
      );
      const { kind, orders } = register.reply((await this.run(register, args)) as never);
      this.renewedAt = now;
      if (this.loss.hasLostData(shown.process, kind)) this.lost();
      if (isNew) {
        this.written = info;
        this.writtenAt = now;
      } else if (kind === 'unknown') {
        this.written = '';
        await this.renewOnce();
      }
      if (orders !== '') this.ordered(orders);
    } catch {
      // The connection logs the failure. The next heartbeat comes soon.
    }
  }
}
