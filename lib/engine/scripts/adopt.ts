import { defineScript } from '../script.js';
import { claims, type RawClaims } from '../replies.js';
import type { AdoptAnswer } from '../engine.js';

export const adopt = defineScript({
  name: 'adopt',
  memory: 'read',
  keys: ['active', 'jobs', 'attempts', 'stalls'],
  args: {},
  /** known: id. */
  lists: ['known'],
  reply: ([lost, ...unknown]: [string[], ...RawClaims]): AdoptAnswer => ({ lost, unknown: claims(unknown) }),
});
