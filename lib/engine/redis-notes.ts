import type { NoteCall } from '../contract/engine.js';
import type { RedisStore } from './redis-store.js';
import { note } from './scripts/work.js';
import type { EngineSettings } from './wire/clients.js';

/** How many notes one script stores, so that it does not block Redis for long. */
const NOTES_AT_ONCE = 100;
/** Characters of the notes of one script. A single note can have more. */
const CHARACTERS_AT_ONCE = 65_536;
const NOW = Promise.resolve();

interface Waiting {
  readonly call: NoteCall;
  readonly resolve: (isHeld: boolean) => void;
  readonly reject: (error: Error) => void;
}

/** Progress and log lines. Those that the runs of a worker write in one tick are stored by one script. */
export class RedisNotes {
  private readonly waiting = new Map<string, Waiting[]>();

  constructor(
    private readonly store: RedisStore,
    private readonly settings: EngineSettings,
  ) {}

  /** Resolves to whether the worker still has the job. */
  note(queue: string, call: NoteCall): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const key = `${call.worker}\n${queue}`;
      const waiting = this.waiting.get(key);
      if (waiting) {
        waiting.push({ call, resolve, reject });
        return;
      }
      this.waiting.set(key, [{ call, resolve, reject }]);
      // Runs after the promise jobs that are queued already, so that handlers resumed by one answer share the next call.
      void NOW.then(() => {
        const all = this.waiting.get(key)!;
        this.waiting.delete(key);
        for (let from = 0; from < all.length;) {
          const batch = all.slice(from, from + countOf(all, from));
          from += batch.length;
          void this.send(queue, batch);
        }
      });
    });
  }

  /** Never rejects. */
  private async send(queue: string, batch: readonly Waiting[]): Promise<void> {
    const { maxEvents, eventsMaxBytes, progressMaxBytes, logsMax } = this.settings.limitsOf(queue);
    const keys = this.store.keysOfWorker(queue, batch[0]!.call.worker);
    const args = { logsMax, maxEvents, eventsMaxBytes, progressMaxBytes };
    const notes = batch.flatMap(({ call: { id, name, attempt, progress = '', log = '' } }) => [
      id,
      name,
      attempt,
      progress,
      log,
    ]);
    try {
      const held = await this.store.run(note, keys, args, { notes });
      batch.forEach(({ resolve }, i) => resolve(held[i]!));
    } catch (error) {
      for (const { reject } of batch) reject(error as Error);
    }
  }
}

/** How many of the notes from this one on go into one call. */
function countOf(all: readonly Waiting[], from: number): number {
  let characters = 0;
  for (let count = 0; ; count++) {
    const call = all[from + count]?.call;
    if (!call || count === NOTES_AT_ONCE) return count;
    characters += (call.progress?.length ?? 0) + (call.log?.length ?? 0);
    if (count > 0 && characters > CHARACTERS_AT_ONCE) return count;
  }
}
