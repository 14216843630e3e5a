export { GodwitAdapter } from './bull-board/godwit-adapter.js';
export type { GodwitAdapterOptions } from './bull-board/godwit-adapter.js';
