/**
 * The body of a dead job that gets another life: the time within which it must start begins anew, since it could first have run
 * now. That is `d` among the options of the job, in the third line; of a name that stands there twice the last one counts. Anything
 * else than such a body stays as it is.
 */
export function renewed(body: string, now: number): string {
  const found = /^([^\n]+\n[0-9a-z]+\n)([^\n]*)(\n[^]*)$/.exec(body);
  if (!found) return body;
  const [, head, options = '', data] = found;
  const mark = `"d":${now}}`;
  if (options === '') return `${head}{${mark}${data}`;
  if (!options.startsWith('{') || !options.endsWith('}')) return body;
  const others = options.replace(/,?"d":\d+}$/, '}').slice(0, -1);
  return `${head}${others}${others === '{' ? '' : ','}${mark}${data}`;
}
