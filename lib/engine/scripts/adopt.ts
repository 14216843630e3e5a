import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';
import { claims, type RawClaims } from '../codec/replies.js';
import type { AdoptAnswer } from '../../contract/engine.js';

export const adopt = defineScript({
  name: 'adopt',
  memory: 'read',
  keys: ['active', 'jobs', 'attempts', 'stalls', ...LETTERED_JOBS],
  args: {},
  /** known: id. */
  lists: ['known'],
  reply: ([lost, ...unknown]: [string[], ...RawClaims]): AdoptAnswer => ({ lost, unknown: claims(unknown) }),
});
