import { useMemo, useState } from 'preact/hooks';
import { parseExact, printExact, sortExact, type JsonNode } from '../../lib/subpaths/dashboard/exact-json.js';
import type { ShownJson } from '../../lib/subpaths/dashboard/redaction.js';
import { bytes, count } from './format.js';
import { keyOrder } from './state.js';
import { CopyButton } from './widgets.js';

const OPEN_DEPTH = 3;
const MANY = 100;
const LONG = 400;

/** A JSON value as a tree. Numbers are shown as they are stored. */
export function Json({ value, onAll }: { value: ShownJson; onAll?: () => void }) {
  const [fold, setFold] = useState<Fold>({ kind: 'usual', times: 0 });
  const isSorted = keyOrder.value.value === 'sorted';
  const tree = useMemo(() => {
    const read = value.isCut ? null : parseExact(value.json);
    return read && isSorted ? sortExact(read) : read;
  }, [value.json, value.isCut, isSorted]);
  const all = (kind: Fold['kind']) => setFold(({ times }) => ({ kind, times: times + 1 }));
  const text = tree ? printExact(tree, '  ') : value.json;
  return (
    <div class="json">
      <div class="row">
        <span class="faint">{bytes(value.bytes)}</span>
        <CopyButton text={text} />
        {tree && hasKeys(tree) && (
          <button
            type="button"
            class="small"
            aria-pressed={isSorted}
            title="Keys by name, or as they were added. For all pages."
            onClick={() => keyOrder.next()}
          >
            Sort keys
          </button>
        )}
        {tree && isDeep(tree) && (
          <>
            <button type="button" class="small" onClick={() => all('open')}>
              Open all
            </button>
            <button type="button" class="small" onClick={() => all('closed')}>
              Close all
            </button>
          </>
        )}
        {value.isCut && onAll && (
          <button type="button" class="small" onClick={onAll}>
            Load all
          </button>
        )}
      </div>
      {tree ? (
        <div class="tree">
          <Branch key={fold.times} node={tree} depth={0} fold={fold.kind} />
        </div>
      ) : (
        <pre tabIndex={0}>
          {value.json}
          {value.isCut && ' …'}
        </pre>
      )}
    </div>
  );
}

/** The parts of a list or an object. */
const partsOf = (node: JsonNode): readonly JsonNode[] =>
  node.kind === 'list' ? node.items : node.kind === 'object' ? node.entries.map(([, part]) => part) : [];

/** Whether an object in it has several keys. */
function hasKeys(node: JsonNode): boolean {
  return (node.kind === 'object' && node.entries.length > 1) || partsOf(node).some(hasKeys);
}

/** Whether something in it can be opened. */
function isDeep(node: JsonNode): boolean {
  return partsOf(node).some((part) => partsOf(part).length > 0);
}

/** Which parts are open: the outer ones, all, or only the outermost. Each choice applies to all parts anew. */
interface Fold {
  readonly kind: 'usual' | 'open' | 'closed';
  readonly times: number;
}

interface BranchProps {
  node: JsonNode;
  depth: number;
  label?: string;
  fold: Fold['kind'];
}

function Branch({ node, depth, label, fold }: BranchProps) {
  const [limit, setLimit] = useState(MANY);
  const key = label !== undefined && <span class="key">{label}: </span>;
  if (node.kind !== 'object' && node.kind !== 'list')
    return (
      <div class="leaf">
        {key}
        <Leaf node={node} />
      </div>
    );
  const children =
    node.kind === 'list' ? node.items.map((item, at) => [String(at), item] as const) : node.entries;
  const [open, close] = node.kind === 'list' ? '[]' : '{}';
  if (children.length === 0)
    return (
      <div class="leaf">
        {key}
        {open}
        {close}
      </div>
    );
  const isUsual = depth < OPEN_DEPTH && children.length <= MANY;
  const isOpen = fold === 'usual' ? isUsual : fold === 'open' || depth === 0;
  return (
    <details open={isOpen}>
      <summary>
        {key}
        {open}
        <span class="faint">{count(children.length)}</span>
        {close}
      </summary>
      {children.slice(0, limit).map(([name, child], at) => (
        <Branch key={at} node={child} depth={depth + 1} label={name} fold={fold} />
      ))}
      {children.length > limit && (
        <button type="button" class="small" onClick={() => setLimit(limit + 1_000)}>
          Show {count(Math.min(1_000, children.length - limit))} more
        </button>
      )}
    </details>
  );
}

function Leaf({ node }: { node: Exclude<JsonNode, { kind: 'object' | 'list' }> }) {
  const [isLong, setLong] = useState(node.kind === 'text' && node.value.length > LONG);
  if (node.kind !== 'text') return <span class={node.kind}>{node.text}</span>;
  const isHidden = /^\[hidden \d+ of [0-9a-f]{8}\]$/.test(node.value);
  if (isHidden)
    return (
      <span class="hidden" title="Hidden by the option redact">
        hidden
      </span>
    );
  return (
    <span class="text">
      {JSON.stringify(isLong ? node.value.slice(0, LONG) : node.value)}
      {isLong && (
        <button type="button" class="small" onClick={() => setLong(false)}>
          Show all {count(node.value.length)} characters
        </button>
      )}
    </span>
  );
}
