import { RedisRefusedError } from '../errors.js';
import { show } from '../errors/show.js';
import { RedisStore } from './redis-store.js';
import { dispatch } from './scripts/processes.js';
import { CALL_MS } from '../contract/retry.js';
import type { DispatchAnswer, DispatchCall, TaskVerbs } from '../contract/task-verbs.js';
import type { RedisConnection } from '../options/connection.js';
import { Connections } from './wire/connections.js';
import type { LinkEvent } from '../contract/engine.js';
import { checkServer } from './wire/server-check.js';

const PER_SECOND = { s: 1, ms: 1000 } as const;

/** The required content of each key, as a phrase after "and". */
const MUST_BE = {
  delayedTasks: 'delayed tasks wait in a sorted set (ZADD)',
  readyTasks: 'ready tasks wait in a list (BLPOP)',
} as const;

/** The verbs for queues of other programs, on Redis. */
export class RedisTasks implements TaskVerbs {
  constructor(private readonly store: RedisStore) {}

  async dispatch(call: DispatchCall): Promise<DispatchAnswer> {
    const { delayedKey, readyKey, limit, unit, maxReady = 0 } = call;
    const answer = await this.store
      .run(
        dispatch,
        { delayedTasks: delayedKey, readyTasks: readyKey },
        { limit, perSecond: PER_SECOND[unit], maxReady },
      )
      .catch((error: unknown) => {
        throw inWords(error, call);
      });
    if (answer.kind === 'wrong-type') {
      const key = answer.key === 'delayedTasks' ? delayedKey : readyKey;
      const why = `the key ${name(key)} is a ${answer.type}, and ${MUST_BE[answer.key]}; name another key`;
      throw refusal('WRONGTYPE', why);
    }
    const { dispatched, delayed, ready, dueInMs } = answer;
    return { dispatched, delayed, ready, dueInMs };
  }
}

/** Explains a refusal of Redis and what to do about it. */
function inWords(error: unknown, { delayedKey, readyKey }: DispatchCall): unknown {
  if (!(error instanceof RedisRefusedError && error.reply === 'CROSSSLOT')) return error;
  const why =
    `${name(delayedKey)} and ${name(readyKey)} lie in different slots of the cluster, and only keys of one slot can be ` +
    `changed at once; give both names the same hash tag, as in '{tasks}:delayed' and '{tasks}:ready'`;
  return refusal('CROSSSLOT', why, error);
}

function refusal(reply: string, why: string, cause?: unknown): RedisRefusedError {
  return new RedisRefusedError('dispatch', reply, why, { cause }, 'no', '');
}

/** The key as text for a message. A key may contain any bytes. */
function name(key: string): string {
  return show(key).replace(/ \(string\)$/, '');
}

/** Only the verbs for queues of other programs, over one connection, for programs that have no queue of Godwit. */
export interface OpenTasks extends TaskVerbs {
  /** Calls the listener at every change between `up` and `down`. Returns a function that removes the listener. */
  onLink(listener: (event: LinkEvent) => void): () => void;
  close(): Promise<void>;
}

/** Connects at the first call. In `CLIENT LIST` the connection is `godwit:dispatch:command`. */
export function openTasks(connection: RedisConnection): OpenTasks {
  const connections = new Connections(connection, 'dispatch', 'command');
  const refuseOldServer = (info: string) => void checkServer(info, 0);
  const store = new RedisStore('dispatch', CALL_MS, refuseOldServer, (greet) => connections.commands(greet));
  const tasks = new RedisTasks(store);
  return {
    dispatch: (call) => tasks.dispatch(call),
    onLink: (listener) => connections.onLink(listener),
    close: async () => {
      await store.close();
      await connections.close();
    },
  };
}
