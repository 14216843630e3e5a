import { describe, expect, test } from 'vitest';
import { Settings } from '../src/settings.js';
import { AddressGuard, AddressRefusedError } from '../src/webhooks/address-guard.js';

const guardWith = (allow: string) => new AddressGuard(new Settings({ WEBHOOK_ALLOW: allow }));
const isRefused = (guard: AddressGuard, url: string) => {
  try {
    guard.checkUrl(new URL(url));
    return false;
  } catch (error) {
    if (error instanceof AddressRefusedError) return true;
    throw error;
  }
};

test.each([
  'http://8.8.8.8/',
  'https://172.15.255.255/',
  'http://172.32.0.1/',
  'http://192.167.1.1/',
  'http://11.0.0.1/',
  'http://[2606:4700::1111]/',
  'http://[::ffff:8.8.8.8]/',
  'http://example.com/',
  'http://localhost.example.com/',
])('%s is public, or a name to be judged when it is resolved', (url) => {
  expect(isRefused(guardWith(''), url)).toBe(false);
});

describe('the allow-list', () => {
  test.each([
    ['10.2.0.0/16', 'http://10.2.255.1/', 'http://10.3.0.1/'],
    ['127.0.0.1:4001', 'http://127.0.0.1:4001/', 'http://127.0.0.1:4002/'],
    ['127.0.0.1:443', 'https://127.0.0.1/', 'http://127.0.0.1/'],
    ['127.0.0.1:4001', 'http://[::ffff:127.0.0.1]:4001/', 'http://[::ffff:127.0.0.1]:4002/'],
    ['192.168.1.7', 'http://192.168.1.7:9999/', 'http://192.168.1.8/'],
    ['[::1]:4001', 'http://[::1]:4001/', 'http://[::1]/'],
    ['::1', 'http://[::1]:4001/', 'http://[::2]/'],
    ['fd00::/8', 'http://[fd12::1]/', 'http://[fc12::1]/'],
    [' 10.0.0.1 , 127.0.0.1:80,', 'http://localhost/', 'http://localhost:81/'],
  ])('%s lets %s through and not %s', (allow, open, closed) => {
    const guard = guardWith(allow);
    expect([isRefused(guard, open), isRefused(guard, closed)]).toEqual([false, true]);
  });

  test.each([
    'localhost',
    '10.0.0.1/33',
    '::1/129',
    '127.0.0.1:65536',
    '127.0.0.1:',
    '10.0.0',
    '300.1.1.1',
    '[10.0.0.1',
    'x',
  ])('does not take %s', (entry) => {
    expect(() => guardWith(entry)).toThrow('WEBHOOK_ALLOW takes entries like');
  });
});
