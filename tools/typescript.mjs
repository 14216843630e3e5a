// Lets Node run TypeScript without a build: `node --import ./tools/typescript.mjs program.ts`. Types are not
// checked here; that is `npm run typecheck`.
import * as nodeModule from 'node:module';

// Node 20 has only register(), which Node 26 warns about. It loads the hooks, and so the compiler, in a thread of its own.
if ('registerHooks' in nodeModule) nodeModule.registerHooks(await import('./typescript/hooks.mjs'));
else nodeModule.register('./typescript/hooks.mjs', import.meta.url);
