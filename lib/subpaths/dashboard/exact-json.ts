/**
 * A JSON tree that keeps the digits of numbers: `JSON.parse` would round a 64-bit id. The server hides fields in it, and the
 * page shows it.
 */
export type JsonNode =
  | { readonly kind: 'object'; readonly entries: readonly (readonly [key: string, value: JsonNode])[] }
  | { readonly kind: 'list'; readonly items: readonly JsonNode[] }
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'word'; readonly text: 'true' | 'false' | 'null' };

/** Deeper values are not shown. */
const MAX_DEPTH = 200;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// oxlint-disable-next-line no-control-regex
const TEXT = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;

/** Parses a JSON text. Null if it is invalid, or nested more than 200 deep. */
export function parseExact(text: string): JsonNode | null {
  const reader = new Reader(text);
  const node = reader.value(0);
  return node !== null && reader.isAtEnd() ? node : null;
}

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  isAtEnd(): boolean {
    this.match(SPACE);
    return this.at === this.text.length;
  }

  value(depth: number): JsonNode | null {
    this.match(SPACE);
    const first = this.text[this.at];
    if (first === '{' || first === '[') return depth < MAX_DEPTH ? this.nested(first, depth + 1) : null;
    if (first === '"') {
      const quoted = this.match(TEXT);
      return quoted === null ? null : { kind: 'text', value: JSON.parse(quoted) as string };
    }
    for (const word of ['true', 'false', 'null'] as const)
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return { kind: 'word', text: word };
      }
    const number = this.match(NUMBER);
    return number === null ? null : { kind: 'number', text: number };
  }

  private nested(open: '{' | '[', depth: number): JsonNode | null {
    const close = open === '{' ? '}' : ']';
    const entries: [string, JsonNode][] = [];
    const items: JsonNode[] = [];
    this.at += 1;
    for (;;) {
      this.match(SPACE);
      const count = entries.length + items.length;
      if (this.take(close)) {
        return open === '{' ? { kind: 'object', entries } : { kind: 'list', items };
      }
      if (count > 0 && !this.take(',')) return null;
      this.match(SPACE);
      if (open === '{') {
        const key = this.match(TEXT);
        this.match(SPACE);
        if (key === null || !this.take(':')) return null;
        const value = this.value(depth);
        if (value === null) return null;
        entries.push([JSON.parse(key) as string, value]);
      } else {
        const value = this.value(depth);
        if (value === null) return null;
        items.push(value);
      }
    }
  }

  private take(sign: string): boolean {
    if (this.text[this.at] !== sign) return false;
    this.at += 1;
    return true;
  }

  private match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }
}

/** The JSON text of a tree; with an indent on several lines. */
export function printExact(node: JsonNode, indent = '', margin = ''): string {
  switch (node.kind) {
    case 'text':
      return JSON.stringify(node.value);
    case 'number':
    case 'word':
      return node.text;
    default: {
      const inner = `${margin}${indent}`;
      const parts =
        node.kind === 'list'
          ? node.items.map((item) => printExact(item, indent, inner))
          : node.entries.map(
              ([key, value]) => `${JSON.stringify(key)}:${indent && ' '}${printExact(value, indent, inner)}`,
            );
      const [open, close] = node.kind === 'list' ? '[]' : '{}';
      if (parts.length === 0) return `${open}${close}`;
      return indent === ''
        ? `${open}${parts.join(',')}${close}`
        : `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${margin}${close}`;
    }
  }
}

/** A copy of a tree in which the keys of all objects are in the order of their characters. */
export function sortExact(node: JsonNode): JsonNode {
  if (node.kind === 'list') return { kind: 'list', items: node.items.map(sortExact) };
  if (node.kind !== 'object') return node;
  const sorted = node.entries.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return { kind: 'object', entries: sorted.map(([key, value]) => [key, sortExact(value)] as const) };
}

/** A changed copy of a tree. `change` returns the replacement of a node, or null to visit its children. */
export function changeExact(
  node: JsonNode,
  change: (node: JsonNode, path: readonly string[]) => JsonNode | null,
  path: readonly string[] = [],
): JsonNode {
  const changed = change(node, path);
  if (changed !== null) return changed;
  if (node.kind === 'list')
    return {
      kind: 'list',
      items: node.items.map((item, at) => changeExact(item, change, [...path, String(at)])),
    };
  if (node.kind === 'object')
    return {
      kind: 'object',
      entries: node.entries.map(([key, value]) => [key, changeExact(value, change, [...path, key])] as const),
    };
  return node;
}
