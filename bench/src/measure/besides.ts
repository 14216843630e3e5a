/** A program in the same folder as the module at `url`, of the same kind: .js once compiled, .ts where Node is told to read it. */
export function besides(url: string, name: string): URL {
  return new URL(`./${name}${url.endsWith('.ts') ? '.ts' : '.js'}`, url);
}
