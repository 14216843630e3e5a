import { useEffect, useRef, useState } from 'preact/hooks';
import { parseExact, printExact } from '../../lib/subpaths/dashboard/exact-json.js';
import type { NextView, ScheduleView } from '../../lib/subpaths/dashboard/views.js';
import { ApiError, post, put } from './api.js';
import { attempt } from './dialogs.js';
import { duration } from './format.js';
import { NextTimes } from './next-times.js';
import { queuePath, schedulePath } from './state.js';
import { Card, FormEnd } from './widgets.js';

/** How long after the last key press the server computes the next times. */
const TYPING_MS = 300;

/** A form for the rule and the job of a schedule. It shows the next times before the change is saved. */
export function EditSchedule({ one, onEnd }: { one: ScheduleView; onEnd: () => void }) {
  const { cron, every, tz, afterEnd, ...limits } = one.rule ?? {};
  const shown = { data: printed(one.data?.json), options: printed(one.options?.json) };
  const [form, setForm] = useState({
    kind: cron === undefined ? 'every' : 'cron',
    cron: textOf(cron),
    every: typeof every === 'number' ? duration(every) : textOf(every),
    tz: textOf(tz),
    name: one.jobName,
    ...shown,
  });
  const ref = useRef<HTMLFormElement>(null);
  // The form is above the table, so it may be out of sight.
  useEffect(() => ref.current?.querySelector('input')?.focus(), []);
  const set = (field: keyof typeof form) => (event: { readonly currentTarget: { readonly value: string } }) =>
    setForm({ ...form, [field]: event.currentTarget.value });
  const isCron = form.kind === 'cron';
  const rule = isCron
    ? { cron: form.cron.trim(), ...(form.tz.trim() !== '' && { tz: form.tz.trim() }), ...limits }
    : { every: form.every.trim(), ...(afterEnd !== undefined && { afterEnd }), ...limits };
  const at = schedulePath(one.queue, one.id);
  const preview = usePreview(`${at}/preview`, JSON.stringify(rule));
  const isGood = [form.data, form.options].every((text) => text === '' || parseExact(text) !== null);
  const save = async (event: Event) => {
    event.preventDefault();
    const { name, data, options } = form;
    const change = {
      version: one.version,
      rule,
      name,
      ...(data !== shown.data && { data }),
      ...(options !== shown.options && { options }),
    };
    if (await attempt(`${one.id} is saved.`, () => put(at, change))) onEnd();
  };
  const input = (field: 'cron' | 'every' | 'tz' | 'name', label: string) => (
    <label>
      <span>{label}</span>
      <input value={form[field]} required={field !== 'tz'} onInput={set(field)} />
    </label>
  );
  const json = (field: 'data' | 'options', label: string) => (
    <label class="field">
      <span>{label}</span>
      <textarea class="code" spellcheck={false} rows={4} value={form[field]} onInput={set(field)} />
    </label>
  );
  return (
    <Card
      title={`Schedule ${one.id}`}
      id="edit-schedule"
      side={<a href={queuePath(one.queue)}>{one.queue}</a>}
    >
      <form ref={ref} onSubmit={(event) => void save(event)}>
        <div class="filters">
          <label>
            <span>Kind of rule</span>
            <select value={form.kind} onChange={set('kind')}>
              <option value="cron">cron expression</option>
              <option value="every">interval</option>
            </select>
          </label>
          {isCron ? input('cron', 'Cron, such as 0 7 * * MON-FRI') : input('every', 'Every, such as 5m')}
          {isCron && input('tz', 'Time zone (UTC if empty)')}
          {input('name', 'Name of the job')}
        </div>
        {one.data && !one.data.isCut && json('data', 'Data of its jobs as JSON; no schema checks it')}
        {one.options && !one.options.isCut && json('options', 'Options of its jobs as JSON')}
        <h3>Next times with this rule</h3>
        <div aria-live="polite">
          {preview.fault !== null ? (
            <p class="notice bad">{preview.fault}</p>
          ) : preview.next.length === 0 ? (
            <p class="faint">none</p>
          ) : (
            <NextTimes times={preview.next} zone={isCron ? form.tz.trim() : undefined} />
          )}
        </div>
        <FormEnd button="Save it" isJson={isGood} isValid={isGood && preview.fault === null} onEnd={onEnd} />
      </form>
    </Card>
  );
}

interface Preview {
  readonly next: readonly number[];
  /** The reason why the rule is refused. */
  readonly fault: string | null;
}

function usePreview(path: string, rule: string): Preview {
  const [preview, setPreview] = useState<Preview>({ next: [], fault: null });
  useEffect(() => {
    let isOver = false;
    const load = async () => {
      try {
        const { next } = await post<NextView>(path, { rule: JSON.parse(rule) as object });
        if (!isOver) setPreview({ next, fault: null });
      } catch (error) {
        const fault = error instanceof ApiError ? error.message : String(error);
        if (!isOver) setPreview({ next: [], fault });
      }
    };
    const timer = setTimeout(() => void load(), TYPING_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [path, rule]);
  return preview;
}

function printed(json: string | undefined): string {
  const tree = parseExact(json ?? '');
  return tree ? printExact(tree, '  ') : '';
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
