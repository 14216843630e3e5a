import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';
import { AUDITED } from '../../contract/audit-facts.js';

export const auditPage = defineScript({
  name: 'audit-page',
  memory: 'read',
  keys: [...AUDITED, ...LETTERED_JOBS],
  args: { kind: 'text', type: 'text', cursor: 'text', count: 'int' },
  /** The active set. Used if `kind` is none of the other keys. */
  moreKeys: true,
  reply: ([cursor, ids, unreadable]: readonly [string, readonly string[], readonly string[]]) => ({
    cursor,
    ids,
    unreadable,
  }),
});
