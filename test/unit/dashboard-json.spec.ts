import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseExact, printExact } from '#lib/subpaths/dashboard/exact-json.js';
import { fingerprintOf } from '#lib/job/fingerprint.js';
import { Redactor } from '#lib/subpaths/dashboard/redaction.js';
import { decide, DASHBOARD_ACTIONS } from '#lib/subpaths/dashboard/rights.js';

const read = (text: string) => {
  const tree = parseExact(text);
  return tree && printExact(tree);
};

describe('exact JSON', () => {
  it('is printed as it was read, whatever it is', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const compact = JSON.stringify(JSON.parse(text));
        expect(JSON.parse(read(text)!)).toEqual(JSON.parse(text));
        expect(read(compact)).toBe(compact);
        expect(JSON.parse(printExact(parseExact(text)!, '  '))).toEqual(JSON.parse(text));
      }),
    );
  });

  it('keeps numbers that JavaScript would round', () => {
    const text = '{"id":12345678901234567890,"price":0.10,"far":1e400}';
    expect(read(text)).toBe(text);
  });

  it('keeps __proto__ and repeated keys as fields', () => {
    const text = '{"__proto__":{"polluted":1},"a":1,"a":2}';
    expect(read(text)).toBe(text);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it.each([
    '',
    '{',
    '[1,]',
    '{"a"}',
    '01',
    '1 2',
    '"\n"',
    "{'a':1}",
    'undefined',
    '[1 2]',
    '{"a":1,}',
    '+1',
    '.5',
  ])('refuses %j, as JSON.parse does', (text) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
    expect(parseExact(text)).toBeNull();
  });

  it('gives up on data that is nested deeper than 200, without a stack overflow', () => {
    expect(parseExact('['.repeat(200) + ']'.repeat(200))).not.toBeNull();
    expect(parseExact('['.repeat(500_000) + ']'.repeat(500_000))).toBeNull();
  });
});

describe('the redactor', () => {
  const redactor = new Redactor({ paths: ['card.number', 'users.*.email'] });
  const original =
    '{"password":"p1","card":{"number":4111111111111111111,"name":"Ada"},"users":[{"email":"a@x"},{"email":"b@x"}],"id":12345678901234567890}';
  const shown = redactor.show(original)!;

  it('hides fields by name and by path, and nothing else', () => {
    expect(JSON.parse(shown.json.replace('12345678901234567890', '"big"'))).toEqual({
      password: expect.stringMatching(/^\[hidden 1 of/),
      card: { number: expect.stringMatching(/^\[hidden 2 of/), name: 'Ada' },
      users: [
        { email: expect.stringMatching(/^\[hidden 3 of/) },
        { email: expect.stringMatching(/^\[hidden 4 of/) },
      ],
      id: 'big',
    });
    expect(shown.json).not.toMatch(/p1|4111|@x/);
    expect(shown.json).toContain('12345678901234567890');
  });

  it('puts hidden values back where a person left them, also if their order changed', () => {
    const tree = shown.json.replace('"Ada"', '"Eve"');
    expect(redactor.restore(tree, original)).toBe(original.replace('Ada', 'Eve'));
    const [first, second] = shown.json.match(/\{"email":"[^"]+"\}/g)!;
    const turned = shown.json.replace(`${first},${second}`, second!);
    expect(redactor.restore(turned, original)).toContain('"users":[{"email":"b@x"}]');
  });

  it('does not allow copying a hidden value to a visible field', () => {
    const mark = /\[hidden 1 of \w+\]/.exec(shown.json)![0];
    for (const edited of [`{"name":"${mark}"}`, `"${mark}"`, `{"password":"${mark.replace('1', '9')}"}`])
      expect(() => redactor.restore(edited, original)).toThrow(
        'a hidden value can only stay in a hidden field',
      );
    expect(redactor.restore(`{"card":{"number":"${mark}"}}`, original)).toBe('{"card":{"number":"p1"}}');
  });

  it('has a version that changes with what is shown, and not with what is hidden', () => {
    const version = (text: string) => redactor.show(text)!.version;
    expect(version(original.replace('p1', 'p2').replace('a@x', 'c@x'))).toBe(shown.version);
    expect(version(original.replace('Ada', 'Eve'))).not.toBe(shown.version);
  });

  it('does not accept the placeholder of other data', () => {
    expect(() => redactor.restore(shown.json, '{"password":"other"}')).toThrow('a hidden value');
  });

  it('shows nothing of data that it cannot read', () => {
    expect(redactor.show(`{"password":"p1"`)!.json).not.toContain('p1');
    expect(redactor.show(`${'['.repeat(300)}"password"${']'.repeat(300)}`)!.json).toContain('not shown');
  });

  it('cuts long values, and hides before it cuts', () => {
    const long = JSON.stringify({ password: 'p'.repeat(70_000), text: 'x'.repeat(70_000) });
    const cut = redactor.show(long)!;
    expect([cut.isCut, cut.json.length, cut.json.includes('ppp')]).toEqual([true, 65_536, false]);
    expect(redactor.show(long, true)!.json.length).toBeGreaterThan(70_000);
  });

  it('hides nothing if it is turned off', () => {
    expect(new Redactor(false).show(original)!.json).toBe(original);
  });

  it('works with a regular expression that keeps its position', () => {
    const sticky = new Redactor({ fields: /a/gy });
    expect(sticky.show('{"a":1,"a2":2,"a3":3}')!.json.match(/hidden/g)).toHaveLength(3);
  });
});

describe('a verdict', () => {
  it.each([
    [true, 18],
    ['viewer', 2],
    ['operator', 14],
    ['admin', 18],
    [{ allow: 'viewer', actor: 'ada' }, 2],
    [{ allow: true }, 18],
    [false, 0],
    [undefined, 0],
    [null, 0],
    [1, 0],
    ['owner', 0],
    ['__proto__', 0],
    [{}, 0],
    [{ allow: 'constructor' }, 0],
    [[true], 0],
  ])('%j allows %i actions', (verdict, number) => {
    expect(DASHBOARD_ACTIONS.filter((action) => decide(verdict, action).isAllowed)).toHaveLength(number);
  });
});

describe('the fingerprint of an error', () => {
  const of = (message: string) => fingerprintOf({ name: 'Error', message, attempt: 1 }, (same) => same);

  it('leaves out what differs from job to job', () => {
    expect(of('order 12 of user 0b9d2a54-7f5f-4d64-9f3e-0d1c7c3c9f11 took 1.5 s')).toBe(
      'Error: order # of user # took #.# s',
    );
    expect(of('frame 12')).toBe(of('frame 999'));
    expect(of('deadbeef0001 is gone')).toBe('Error: # is gone');
  });

  it('keeps words, one line and a bounded length', () => {
    expect(of('feedback decade\nsecond line')).toBe('Error: feedback decade');
    expect(of('x'.repeat(10_000))).toHaveLength(160);
    expect(fingerprintOf(null, (same) => same)).toBe('unknown');
  });
});
