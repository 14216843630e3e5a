import { readdirSync, readFileSync } from 'node:fs';
import { allShapes } from '../../lib/engine/script.js';
import { LuaError, parseLua, type LuaFile } from './file.js';
import { link, type Linked } from './link.js';

export const SCRIPTS = new URL('../../lib/engine/scripts/', import.meta.url);

/** Every file of Lua, by its name. @param patch another text for some of them */
export function readLibrary(patch = (_name: string, text: string) => text): ReadonlyMap<string, LuaFile> {
  const names = ['', 'shared/'].flatMap((folder) =>
    readdirSync(new URL(`./${folder}`, SCRIPTS))
      .filter((name) => name.endsWith('.lua'))
      .map((name) => folder + name.slice(0, -'.lua'.length)),
  );
  return new Map(
    names.map((name) => [
      name,
      parseLua(name, patch(name, readFileSync(new URL(`${name}.lua`, SCRIPTS), 'utf8'))),
    ]),
  );
}

/** All scripts that are described, linked; the descriptors must have been imported. */
export function linkAll(library = readLibrary(), onFault?: (fault: string) => void): Linked[] {
  return allShapes().flatMap((shape) => {
    try {
      return link(shape, library);
    } catch (error) {
      if (!onFault || !(error instanceof LuaError)) throw error;
      onFault(error.message);
      return [];
    }
  });
}
