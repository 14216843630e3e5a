import { expect, it } from 'vitest';
import { RedisRefusedError } from '#lib/errors.js';

it.each([
  ['READONLY', "READONLY You can't write against a read only replica.", 'connect to its primary'],
  ['NOREPLICAS', 'NOREPLICAS Not enough good replicas to write.', 'min-replicas-to-write'],
  ['CLUSTERDOWN', 'CLUSTERDOWN Hash slot not served', 'CLUSTER INFO'],
  ['MISCONF', 'MISCONF Errors writing to the AOF file', 'cannot write to its disk'],
])('a refusal with %s says what to do', (reply, message, advice) => {
  const error = new RedisRefusedError('enqueue', reply, message);
  expect(error).toMatchObject({ code: 'GODWIT_REDIS_REFUSED', verb: 'add', applied: 'no' });
  expect(error.message).toMatch(
    new RegExp(`^add: Redis refused, nothing was changed: ${reply} .* \\(.*${advice}`),
  );
});
