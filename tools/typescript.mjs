// Lets Node run TypeScript without a build: `node --import ./tools/typescript.mjs program.ts`. Types are not
// checked here; that is `npm run typecheck`.
import * as nodeModule from 'node:module';
import * as hooks from './typescript/hooks.mjs';

// Node 20 has only register(), which Node 26 warns about.
if ('registerHooks' in nodeModule) nodeModule.registerHooks(hooks);
else nodeModule.register('./typescript/hooks.mjs', import.meta.url);
