import { defineScript } from '../script.js';

/** An entry of the stream: its id, then fields and values in turn. */
export type ActionEntry = readonly [id: string, fields: readonly string[]];

export const actions = defineScript({
  name: 'actions',
  memory: 'read',
  keys: ['actions'],
  args: { before: 'text', actor: 'text', queue: 'text', limit: 'int', most: 'int' },
  reply: ([entries, next]: readonly [readonly ActionEntry[], string]) => ({ entries, next }),
});
