import { defineScript } from '../script.js';

export const recordAction = defineScript({
  name: 'record-action',
  memory: 'allow',
  keys: ['actions'],
  /** An empty `queue` is none, and an empty `count` is not known. */
  args: { actor: 'text', action: 'text', queue: 'text', target: 'text', count: 'text', result: 'text' },
  reply: () => undefined,
});
