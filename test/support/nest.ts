import { createRequire } from 'node:module';

const { version } = createRequire(import.meta.url)('@nestjs/core/package.json') as { version: string };

/** The major of Nest that this runs on: 12, or with `npm run test:nest-11` 11. */
export const NEST_MAJOR = Number.parseInt(version, 10);
