import { it } from 'vitest';

// oxlint-disable-next-line vitest/expect-expect -- it never comes to one
it('never ends', () => {
  for (;;);
});
