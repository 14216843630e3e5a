import { expect, it } from 'vitest';

it('passes beside', () => expect(1).toBe(1));

it('fails', () => expect(1).toBe(2));

it('fails too', () => expect(1).toBe(3));
