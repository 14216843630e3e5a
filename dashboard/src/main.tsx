import 'uplot/dist/uPlot.min.css';
import './styles/colours.css';
import './styles/page.css';
import './styles/parts.css';
import './styles/narrow.css';
import { Fragment, options, render, type ComponentChildren, type ComponentType } from 'preact';
import { useEffect, useErrorBoundary } from 'preact/hooks';
import { decodeSegment } from '../../lib/subpaths/dashboard/segments.js';
import type { MeView } from '../../lib/subpaths/dashboard/views.js';
import { usePoll } from './api.js';
import { Dialog } from './dialogs.js';
import { moment, withoutTurns } from './format.js';
import { isHelpOpen, PAGES, SHORTCUTS } from './keys.js';
import { ActionsPage } from './pages/actions.js';
import { DeadPage } from './pages/dead.js';
import { FindPage } from './pages/find.js';
import { JobPage } from './pages/job.js';
import { JobsPage } from './pages/jobs.js';
import { LivePage } from './pages/live.js';
import { Overview, Queues } from './pages/overview.js';
import { QueuePage } from './pages/queue.js';
import { RedisPage } from './pages/redis.js';
import { SchedulesPage } from './pages/schedules.js';
import { WorkersPage } from './pages/workers.js';
import {
  frozen,
  me,
  pace,
  path,
  refreshes,
  setMe,
  settings,
  shortcuts,
  subject,
  theme,
  toast,
  troubles,
  troubleSince,
  zone,
} from './state.js';
import { Empty, useCurrentInView } from './widgets.js';

const VIEWS: Readonly<Record<(typeof PAGES)[number][0], ComponentType>> = {
  '': Overview,
  queues: Queues,
  find: FindPage,
  dead: DeadPage,
  schedules: SchedulesPage,
  workers: WorkersPage,
  live: LivePage,
  redis: RedisPage,
  actions: ActionsPage,
};

/** The page of a path: that of its first part. */
function pageOf(path: string): (typeof PAGES)[number] | undefined {
  const [first] = path.split('/');
  return PAGES.find(([to]) => to === first);
}

function Page() {
  const parts = path.value.split('/').map((part) => {
    try {
      return decodeSegment(part);
    } catch {
      return part;
    }
  });
  const [first, queue, second, id] = parts;
  if (first === 'queues' && queue && second === 'jobs' && id)
    return <JobPage key={path.value} queue={queue} id={id} />;
  if (first === 'queues' && queue && second === 'jobs') return <JobsPage key={queue} queue={queue} />;
  if (first === 'queues' && queue) return <QueuePage key={queue} queue={queue} />;
  const page = pageOf(path.value);
  const View = page && VIEWS[page[0]];
  return View ? <View /> : <Empty title="There is no such page." />;
}

/** Whether this person may see the page. */
function isFor(page: (typeof PAGES)[number][0], person: MeView | null): boolean {
  if (page === 'actions') return person?.rights.includes('read-actions') === true;
  return page !== 'redis' || person?.canSeeRedis === true;
}

/**
 * Shows the error of a page that cannot show an answer, for example one of another version. The links stay
 * usable.
 */
function Boundary({ children }: { children: ComponentChildren }) {
  const [fault] = useErrorBoundary();
  if (fault === undefined) return <>{children}</>;
  return (
    <Empty title="This page has an error.">
      {String(fault)}{' '}
      <button type="button" class="small" onClick={() => location.reload()}>
        Load it again
      </button>
    </Empty>
  );
}

function nextPace(): void {
  pace.next();
  // The next read may be due only after the old time.
  refreshes.value += 1;
}

function App() {
  const { data } = usePoll<MeView>('me', 60_000);
  const links = useCurrentInView(`${path.value} ${me.value?.rights.length}`);
  const [trouble] = troubles.value.values();
  const current = pageOf(path.value);
  const title = current?.[1] ?? '';
  useEffect(() => {
    if (data) setMe(data);
  }, [data]);
  useEffect(() => {
    document.title = `${subject.value ?? title} · ${settings.title}`;
  }, [subject.value, title]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        To the content
      </button>
      <header class="top">
        <a class="brand" href="./" title={settings.title}>
          {settings.title}
        </a>
        {settings.environment && <span class="badge env">{settings.environment}</span>}
        {settings.readOnly && <span class="badge">read-only</span>}
        <nav aria-label="Pages" ref={links}>
          {PAGES.filter(([to]) => isFor(to, me.value)).map(([to, text]) => (
            <a key={to} href={to || './'} {...(to === current?.[0] && { 'aria-current': 'page' as const })}>
              {text}
            </a>
          ))}
        </nav>
        <div class="tools">
          {me.value?.actor && (
            <span class="faint actor" title={me.value.actor}>
              {me.value.actor}
            </span>
          )}
          <button
            type="button"
            class="small"
            title="Freeze (.)"
            aria-pressed={frozen.value}
            onClick={() => (frozen.value = !frozen.value)}
          >
            {frozen.value ? 'Frozen' : 'Freeze'}
          </button>
          <button type="button" class="small" title="Load again (r)" onClick={() => (refreshes.value += 1)}>
            Reload
          </button>
          <button
            type="button"
            class="small"
            title="How often pages load again"
            aria-label={`Reload: ${pace.value.value}`}
            onClick={nextPace}
          >
            {pace.value.value}
          </button>
          <button type="button" class="small" title="Zone of times" onClick={() => zone.next()}>
            {zone.value.value === 'UTC' ? 'UTC' : 'Local time'}
          </button>
          <button type="button" class="small" title="Light or dark (t)" onClick={() => theme.next()}>
            {{ system: 'Auto theme', light: 'Light', dark: 'Dark' }[theme.value.value]}
          </button>
          <button
            type="button"
            class="small"
            aria-label="Shortcuts"
            title="Shortcuts (?)"
            onClick={() => (isHelpOpen.value = true)}
          >
            ?
          </button>
        </div>
      </header>
      {trouble !== undefined && (
        <p class="notice bad away" role="alert">
          <strong>The data is out of date.</strong> {trouble} No data since {moment(troubleSince.value ?? 0)}.
          This page goes on by itself.{' '}
          <button type="button" class="small" onClick={() => location.reload()}>
            Load the page again
          </button>
        </p>
      )}
      <main id="main" tabIndex={-1}>
        <Boundary key={path.value}>
          <Page />
        </Boundary>
      </main>
      {toast.value?.text && (
        <p class={`toast ${toast.value.isBad ? 'bad' : ''}`} role={toast.value.isBad ? 'alert' : 'status'}>
          {toast.value.text}
          <button type="button" class="small" aria-label="Close" onClick={() => (toast.value = null)}>
            ×
          </button>
        </p>
      )}
      {isHelpOpen.value && (
        <aside class="help" aria-label="Shortcuts">
          <h2>Shortcuts</h2>
          <dl>
            {SHORTCUTS.map(([keys, what]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
          <p>
            <label>
              <input
                type="checkbox"
                checked={shortcuts.value.value === 'on'}
                onChange={() => shortcuts.next()}
              />{' '}
              Use these shortcuts
            </label>
          </p>
          <button type="button" onClick={() => (isHelpOpen.value = false)}>
            Close
          </button>
        </aside>
      )}
      <Dialog />
    </>
  );
}

// Applies to the texts of all elements. The text of a field that is edited stays as it is.
const plain = (child: unknown) => (typeof child === 'string' ? withoutTurns(child) : child);
const before = options.vnode?.bind(options);
options.vnode = (vnode) => {
  const props = vnode.props as { children?: unknown };
  const { children } = props;
  if ((typeof vnode.type === 'string' || vnode.type === Fragment) && children !== undefined)
    props.children = Array.isArray(children) ? children.map(plain) : plain(children);
  before?.(vnode);
};

render(<App />, document.getElementById('app')!);
