/** How a `PayloadTooLargeError` calls the payload of `publish()`. Its limit is no option. */
export const EVENT_PAYLOAD = 'the payload of an event';

/** A value for a message: its content and type, at most one line. Never throws. */
export function show(value: unknown): string {
  if (value === undefined) return 'undefined';
  switch (typeof value) {
    case 'function':
      return oneLine(`function ${tryTo(() => String(value.name)) || '(anonymous)'}`);
    case 'symbol':
      return oneLine(value.toString());
    case 'bigint':
      return `${oneLine(`${value}n`)} (bigint)`;
    case 'number':
      return `${value} (number)`;
    default: {
      // A revoked proxy, or a toJSON method, may throw.
      const text = tryTo(() => JSON.stringify(value)) ?? tryTo(() => Object.prototype.toString.call(value));
      return `${oneLine(text ?? 'something that cannot be shown')} (${kindOf(value)})`;
    }
  }
}

/** The type of a text, a boolean or an object. For an object it is the name of its class: `Promise` tells more than `object`. */
function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value !== 'object') return typeof value;
  if (tryTo(() => Array.isArray(value))) return 'array';
  const name = tryTo(() => String(value.constructor.name)) ?? '';
  return name !== 'Object' && /^[A-Za-z_$][\w$]{0,39}$/.test(name) ? name : 'object';
}

/** An id for a message, in quotes. Like `quoted`, but at most 120 characters. */
export function inQuotes(text: string): string {
  return oneLine(JSON.stringify(text));
}

function tryTo<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

/** At most 120 characters of a text, as `escaped`. */
export function oneLine(given: unknown): string {
  // The message of an error from other code is not always a string.
  const text = typeof given === 'string' ? given : (tryTo(() => String(given)) ?? '');
  const clean = escaped(text.length > 120 ? `${text.slice(0, 117)}...` : text);
  return clean.length > 120 ? `${clean.slice(0, 117)}...` : clean;
}

/**
 * A text for one line of a log, a terminal or an error message. Characters that could forge a line, hide text or change the terminal become
 * `\u001b`: control characters, line separators, characters without a width, those that turn the direction of text, and lone surrogates. Every text that
 * comes from outside goes through here: names, ids, messages of other errors, replies of Redis.
 */
export function escaped(text: string): string {
  return text.replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const UNSAFE =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

/** A stack as lines of a log: its message on one line, then its frames. */
export function escapedStack(stack: string): string {
  const first = stack.search(/\n\s+at /);
  const [head, frames] = first < 0 ? [stack, ''] : [stack.slice(0, first), stack.slice(first + 1)];
  return [head, ...(frames === '' ? [] : frames.split('\n'))].map(escaped).join('\n');
}
