import type { TypeDocOptions } from 'typedoc';

declare const config: Partial<TypeDocOptions>;
export default config;
