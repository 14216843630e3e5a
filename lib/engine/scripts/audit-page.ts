import { defineScript } from '../script.js';
import { AUDITED } from './audit.js';

export const auditPage = defineScript({
  name: 'audit-page',
  memory: 'read',
  keys: AUDITED,
  args: { kind: 'text', type: 'text', cursor: 'text', count: 'int' },
  /** The active set, where `kind` names none of the other keys. */
  moreKeys: true,
  reply: ([cursor, ids]: readonly [string, readonly string[]]) => ({ cursor, ids }),
});
