import { createRequire } from 'node:module';

const { version } = createRequire(import.meta.url)('@nestjs/core/package.json') as { version: string };

/** The major version of Nest in use: 12, or 11 with `npm run test:nest-11`. */
export const NEST_MAJOR = Number.parseInt(version, 10);
