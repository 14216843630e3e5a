import { aptInstall, findOnPath } from './programs.mjs';

/** Path of `promtool`, which is installed with the Debian package `prometheus` if it may be; undefined if there is none. */
export function promtool() {
  return (
    findOnPath('promtool') ??
    (aptInstall('promtool', ['prometheus'], true) ? findOnPath('promtool') : undefined)
  );
}
