import type { RedisConnection } from '../options/connection.js';
import { Connections } from './wire/connections.js';
import type { LinkEvent } from '../contract/engine.js';
import { RedisStore } from './redis-store.js';
import { RedisTasks } from './redis-tasks.js';
import { checkServer } from './wire/server-check.js';
import type { TaskVerbs } from '../contract/task-verbs.js';

/** The verbs for queues of other programs alone, over one connection: for a program that has no queue itself. */
export interface OpenTasks extends TaskVerbs {
  /** Told of every change between `up` and `down`; returns the function that stops the telling. */
  onLink(listener: (event: LinkEvent) => void): () => void;
  close(): Promise<void>;
}

/**
 * Connects at the first call.
 *
 * @param name what the connection is called in `CLIENT LIST`, between `godwit:` and `:command`.
 * @param callMs how long one call may take before its socket counts as silent.
 */
export function openTasks(connection: RedisConnection, name: string, callMs: number): OpenTasks {
  const connections = new Connections(connection, name, 'command');
  const refuseOldServer = (info: string) => void checkServer(info, 0);
  const store = new RedisStore(name, callMs, refuseOldServer, (greet) => connections.commands(greet));
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
