import { aptInstall, findOnPath } from './programs.mjs';

/** Path of `promtool`, which is installed with the Debian package `prometheus` if possible; undefined if there is none. */
export function promtool() {
  return programOf('promtool');
}

/** Path of the server `prometheus`, in the same way. */
export function prometheus() {
  return programOf('prometheus');
}

function programOf(name) {
  return findOnPath(name) ?? (aptInstall(name, ['prometheus'], true) ? findOnPath(name) : undefined);
}
