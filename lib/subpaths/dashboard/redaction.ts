import { createHash } from 'node:crypto';
import { InvalidOptionError } from '../../errors.js';
import { changeExact, parseExact, printExact, type JsonNode } from './exact-json.js';

/** Which values of jobs the dashboard hides, as `QueueDashboardModule.forRoot({ redact })`. They never leave the server. */
export interface DashboardRedaction {
  /**
   * Fields with such a name, at any depth of data, results and progress.
   * @default /secret|token|passw(or)?d|authorization|api[-_]?key|cookie/i
   */
  readonly fields?: RegExp;
  /** Paths from the top, such as `card.number` or `users.*.email`; `*` is any field or index. @default none */
  readonly paths?: readonly string[];
  /** Changes free text: messages and stacks of errors, log lines, reasons. @default unchanged */
  readonly text?: (text: string) => string;
}

export const HIDDEN_FIELDS = /secret|token|passw(or)?d|authorization|api[-_]?key|cookie/i;
const MARK = /^\[hidden (\d+) of ([0-9a-f]{8})\]$/;
/** Longer values are cut, unless the whole value is requested. */
const PREVIEW_BYTES = 65_536;

/** A JSON value as the dashboard shows it. */
export interface ShownJson {
  /** The text, or its beginning if `isCut`. Hidden values are `"[hidden 1 of …]"`. */
  readonly json: string;
  /** Size of the whole text. */
  readonly bytes: number;
  /** Whether the text is cut. */
  readonly isCut: boolean;
  /** A digest: it changes with the value. */
  readonly version: string;
}

/** Hides values in JSON texts, and puts them back into an edited text. */
export class Redactor {
  private readonly fields: RegExp;
  private readonly paths: readonly (readonly string[])[];
  readonly text: (text: string) => string;
  /** Whether `text` may change a text. */
  readonly hidesText: boolean;

  constructor(rules: DashboardRedaction | false) {
    const { fields = HIDDEN_FIELDS, paths = [], text } = rules || { fields: /^\b$/ };
    // A sticky or global expression would begin where the previous match ended.
    this.fields = new RegExp(fields.source, fields.flags.replace(/[gy]/g, ''));
    this.paths = paths.map((path) => path.split('.'));
    this.text = text ?? ((same) => same);
    this.hidesText = text !== undefined;
  }

  /** Null for a missing value. A text that is not JSON is hidden completely. */
  show(text: string | null | undefined, isFull = false): ShownJson | null {
    if (text === null || text === undefined || text === '') return null;
    const tree = parseExact(text);
    const version = this.versionOf(tree);
    const shown = tree
      ? printExact(this.hide(tree, version))
      : JSON.stringify('[not shown: it is not valid JSON, or is nested too deep]');
    const isCut = !isFull && shown.length > PREVIEW_BYTES;
    return {
      json: isCut ? shown.slice(0, PREVIEW_BYTES) : shown,
      bytes: Buffer.byteLength(text),
      isCut,
      version,
    };
  }

  /**
   * The edited text with the hidden values of the original in their places.
   *
   * @throws {InvalidOptionError} for a text that is not valid JSON, and for a hidden value in a place that is not hidden.
   */
  restore(edited: string, original: string, field = 'data'): string {
    const tree = parseExact(edited);
    if (tree === null)
      throw new InvalidOptionError(field, 'JSON that is nested at most 200 deep', edited.slice(0, 200));
    const hidden: JsonNode[] = [];
    const there = parseExact(original);
    if (there)
      changeExact(there, (node, path) => {
        if (!this.isHidden(path)) return null;
        hidden.push(node);
        return node;
      });
    const version = this.versionOf(there);
    const restored = changeExact(tree, (node, path) => {
      const [, number, of] = (node.kind === 'text' && MARK.exec(node.value)) || [];
      if (number === undefined) return null;
      const value = hidden[Number(number) - 1];
      const isInPlace = path.some((_, at) => this.isHidden(path.slice(0, at + 1)));
      if (of !== version || value === undefined || !isInPlace)
        throw new InvalidOptionError(
          [field, ...path].join('.'),
          'a new value: a hidden value can only stay in a hidden field',
          '[hidden]',
        );
      return value;
    });
    return printExact(restored);
  }

  /** Whether a field of the data is hidden, or is inside a hidden field. A search for its value would reveal the value. */
  hides(field: string): boolean {
    const path = field.split('.');
    return this.fields.test(field) || path.some((_, at) => this.isHidden(path.slice(0, at + 1)));
  }

  /** A digest of the shown values. It does not depend on hidden ones, because short ones could be found by trying all. */
  private versionOf(tree: JsonNode | null): string {
    const shown = tree ? printExact(this.hide(tree, '')) : '';
    return createHash('sha256').update(shown).digest('hex').slice(0, 8);
  }

  private hide(tree: JsonNode, version: string): JsonNode {
    let count = 0;
    return changeExact(tree, (_node, path) =>
      this.isHidden(path) ? { kind: 'text', value: `[hidden ${(count += 1)} of ${version}]` } : null,
    );
  }

  private isHidden(path: readonly string[]): boolean {
    const last = path.at(-1);
    if (last === undefined) return false;
    return this.fields.test(last) || this.paths.some((hidden) => isAt(hidden, path));
  }
}

function isAt(hidden: readonly string[], path: readonly string[]): boolean {
  return hidden.length === path.length && hidden.every((step, at) => step === '*' || step === path[at]);
}
