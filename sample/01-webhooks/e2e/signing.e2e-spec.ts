import { describe, expect, test } from 'vitest';
import { findFault, sign } from '../src/webhooks/signature.js';
import { SECRET } from './support/sample.js';

// The published example of Standard Webhooks.
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const AT = new Date(1_614_265_330_000);
const BODY = '{"test": 2432232314}';
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';

test('signs as the convention does', () => {
  expect(sign(SECRET, ID, BODY, AT)).toEqual({
    'webhook-id': ID,
    'webhook-timestamp': '1614265330',
    'webhook-signature': SIGNATURE,
  });
});

describe('a receiver', () => {
  const headers = { ...sign(SECRET, ID, BODY, AT) };
  const later = (seconds: number) => new Date(AT.getTime() + seconds * 1000);

  test.each([
    ['at once', headers, AT],
    ['a little later', headers, later(299)],
    ['one of several signatures', { ...headers, 'webhook-signature': `v1,AAAA v2,xx ${SIGNATURE}` }, AT],
  ])('accepts %s', (_, given, now) => {
    expect(findFault(SECRET, given, BODY, now)).toBeNull();
  });

  test.each([
    ['another body', headers, `${BODY} `, AT, 'does not match'],
    ['another id', { ...headers, 'webhook-id': 'msg_other' }, BODY, AT, 'does not match'],
    [
      'another version',
      { ...headers, 'webhook-signature': SIGNATURE.replace('v1', 'v2') },
      BODY,
      AT,
      'does not match',
    ],
    ['another time', { ...headers, 'webhook-timestamp': '1614265331' }, BODY, AT, 'does not match'],
    ['a time that is none', { ...headers, 'webhook-timestamp': 'now' }, BODY, AT, 'too old'],
    ['an old one', headers, BODY, later(301), 'too old'],
    ['one from the future', headers, BODY, later(-301), 'too old'],
    ['no signature', {}, BODY, AT, 'missing'],
  ])('refuses %s', (_, given, body, now, fault) => {
    expect(findFault(SECRET, given, body, now)).toContain(fault);
  });
});
