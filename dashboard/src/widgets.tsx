import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Unreadable } from '../../lib/subpaths/dashboard/views.js';
import type { ApiError } from './api.js';
import { moment, relative } from './format.js';
import { me, now, say, subject } from './state.js';

/** Parts that several pages have. */

export function Time({ at, none = '–' }: { at: number | null; none?: string }) {
  if (at === null) return <span class="faint">{none}</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={`${moment(at)} (${new Date(at).toISOString()})`}>
      {relative(at, now.value)}
    </time>
  );
}

export function State({ state }: { state: string }) {
  return <span class={`state ${state}`}>{state}</span>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}

/** Shown instead of a page without data: that the data is loading, or why there is none. */
export function Waiting({ error }: { error: ApiError | undefined }) {
  if (!error)
    return (
      <p class="faint" aria-busy="true">
        Loading …
      </p>
    );
  if (error.status === 404)
    return (
      <Empty title={`${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`}>
        <a href="queues">All queues</a>
      </Empty>
    );
  if (error.status === 400) return <Empty title="The address is not valid.">{error.message}</Empty>;
  if (error.status === 403) {
    const [, right] = /^you may not do this \((.+)\)$/.exec(error.message) ?? [];
    return (
      <Empty title="You may not see this.">
        {right === undefined
          ? error.message
          : `It needs the right ${right === 'read' ? `to see ${me.value ? 'the server' : 'a queue'}` : right}.`}
      </Empty>
    );
  }
  return <Empty title="It cannot be shown now.">{error.message} This page tries again by itself.</Empty>;
}

/** The queues that are missing on the page, each with the reason. */
export function UnreadableQueues({ queues, only = null }: { queues: Unreadable; only?: string | null }) {
  const shown = Object.entries(queues).filter(([queue]) => only === null || queue === only);
  return shown.map(([queue, why]) => (
    <p key={queue} class="notice bad">
      <strong>Queue {queue} cannot be read.</strong> {why}
    </p>
  ));
}

export function Tile({
  label,
  value,
  note,
  to,
  tone,
}: {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  to?: string;
  tone?: 'bad' | 'warn' | 'good';
}) {
  const inside = (
    <>
      <span class="label">{label}</span>
      <span class="value">{value}</span>
      {note !== undefined && <span class="note">{note}</span>}
    </>
  );
  const className = `tile ${tone ?? ''}`;
  return to === undefined ? (
    <div class={className}>{inside}</div>
  ) : (
    <a class={className} href={to}>
      {inside}
    </a>
  );
}

export function Card({
  title,
  side,
  children,
  id,
}: {
  title?: string;
  side?: ComponentChildren;
  children: ComponentChildren;
  id?: string;
}) {
  return (
    <section class="card" aria-labelledby={title && id}>
      {title && (
        <header>
          <h2 id={id}>{title}</h2>
          {side}
        </header>
      )}
      {children}
    </section>
  );
}

/**
 * A table that scrolls sideways if it does not fit. On a narrow screen each row is a block of lines: the
 * style sheet then shows the heading in front of each value, and the roles keep it a table for assistive
 * software.
 */
export function Table({
  head,
  children,
  label,
  hasPairs = false,
  isFixed = false,
}: {
  head: readonly (string | JSX.Element)[];
  children: ComponentChildren;
  label: string;
  /** Whether two numbers share a line on a narrow screen. It needs an even count of numbers. */
  hasPairs?: boolean;
  /** Whether the contents do not change the widths of columns, so that they are the same in several tables. */
  isFixed?: boolean;
}) {
  const headings = useRef<HTMLTableRowElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  // Runs before the page is painted, so that new rows do not jump.
  useLayoutEffect(() => {
    const [first] = body.current!.rows;
    for (const [at, heading] of [...headings.current!.cells].entries())
      heading.classList.toggle('num', first?.cells[at]?.classList.contains('num') ?? false);
    for (const row of body.current!.rows) {
      if (row.role !== 'row') row.role = 'row';
      for (const [at, cell] of [...row.cells].entries()) {
        const title = typeof head[at] === 'string' ? head[at] : '';
        if (cell.dataset['label'] === title) continue;
        cell.dataset['label'] = title;
        cell.role = cell.scope === 'row' ? 'rowheader' : 'cell';
      }
    }
  });
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table role="table" class={hasPairs ? 'pairs' : isFixed ? 'fixed' : undefined}>
        <thead role="rowgroup">
          <tr role="row" ref={headings}>
            {head.map((cell, at) => (
              <th key={at} scope="col" role="columnheader">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body} role="rowgroup">
          {children}
        </tbody>
      </table>
    </div>
  );
}

/** Names the open page in the title of the tab. */
export function useSubject(text: string) {
  useEffect(() => {
    subject.value = text;
    return () => (subject.value = null);
  }, [text]);
}

/** Scrolls a row of links that is wider than the window, so that the link of the open page is visible. */
export function useCurrentInView(state: unknown) {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    const box = ref.current;
    const link = box?.querySelector('[aria-current]');
    if (!box || !link) return;
    const [at, of] = [link.getBoundingClientRect(), box.getBoundingClientRect()];
    box.scrollLeft += at.left + at.width / 2 - of.left - of.width / 2;
  }, [state]);
  return ref;
}

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  return (
    <button type="button" class="small" onClick={() => void copy(text)}>
      {label}
    </button>
  );
}

/** Browsers offer the clipboard only on secure addresses. */
async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  say('Copied.');
}

/** A small line without axes; its values are in the table next to it. */
export function Spark({ values, label }: { values: readonly number[]; label: string }) {
  const width = 56;
  const height = 22;
  const max = Math.max(1, ...values);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.map(
    (value, at) => `${(at * step).toFixed(1)},${(height - 1 - (value / max) * (height - 2)).toFixed(1)}`,
  );
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={label}
    >
      {points.length > 1 && (
        <polyline points={points.join(' ')} fill="none" stroke="currentColor" stroke-width="1.5" />
      )}
    </svg>
  );
}

interface FormEndProps {
  /** Text of the button that sends the form. */
  button: string;
  /** Text of the button that closes the form. */
  close?: string;
  /** Whether the texts of the form are JSON where they must be. */
  isJson?: boolean;
  /** Whether the form can be sent. */
  isValid?: boolean;
  onEnd: () => void;
  /** Further buttons, before the others. */
  children?: ComponentChildren;
}

/** The buttons at the end of a form. */
export function FormEnd({
  button,
  close = 'Close',
  isJson = true,
  isValid = isJson,
  onEnd,
  children,
}: FormEndProps) {
  return (
    <div class="row end">
      {!isJson && <span class="badge bad">this is not JSON</span>}
      {children}
      <button type="button" onClick={onEnd}>
        {close}
      </button>
      <button type="submit" class="primary" disabled={!isValid}>
        {button}
      </button>
    </div>
  );
}

interface FilterProps {
  label: string;
  /** The value in the address. */
  value: string | null | undefined;
  onChange: (value: string) => void;
}

/** Filters a page by one of these values. */
export function ChoiceFilter({
  label,
  value,
  values,
  onChange,
}: FilterProps & { values: readonly string[] }) {
  return (
    <label>
      <span>{label}</span>
      <select value={value ?? ''} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">all</option>
        {values.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}

/** Filters a page by a text. */
export function TextFilter({ label, value, maxLength, onChange }: FilterProps & { maxLength?: number }) {
  return (
    <label>
      <span>{label}</span>
      <input
        type="search"
        // Not `value`: the next change of the page would reset a text that is being typed.
        key={value}
        defaultValue={value ?? ''}
        maxLength={maxLength}
        onChange={(event) => onChange(event.currentTarget.value.trim())}
      />
    </label>
  );
}
