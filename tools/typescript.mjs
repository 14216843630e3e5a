// Lets Node run TypeScript without a build: `node --import ./tools/typescript.mjs program.ts`. Types are not
// checked here; that is `npm run typecheck`.
import { register } from 'node:module';

register('./typescript/hooks.mjs', import.meta.url);
