import 'uplot/dist/uPlot.min.css';
import './styles/colours.css';
import './styles/page.css';
import './styles/parts.css';
import './styles/charts.css';
import './styles/narrow.css';
import { Fragment, options, render, type ComponentChildren, type ComponentType } from 'preact';
import { useEffect, useErrorBoundary } from 'preact/hooks';
import { decodeSegment } from '../../lib/subpaths/dashboard/segments.js';
import type { MeView } from '../../lib/subpaths/dashboard/views.js';
import { usePoll, useProbe } from './api.js';
import { Dialog } from './dialogs.js';
import { moment, visible } from './format.js';
import { Header, Help } from './header.js';
import { PAGES } from './keys.js';
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
import { me, path, setMe, settings, subject, toast, troubles, troubleSince } from './state.js';
import { Empty } from './widgets.js';

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
  if (first === 'queues' && queue && parts.length <= 4 && (second ?? 'jobs') === 'jobs') {
    if (id) return <JobPage key={path.value} queue={queue} id={id} />;
    if (second) return <JobsPage key={queue} queue={queue} />;
    return <QueuePage key={queue} queue={queue} />;
  }
  const page = parts.length === 1 ? pageOf(path.value) : undefined;
  const View = page && VIEWS[page[0]];
  return View ? <View /> : <Empty title="There is no such page." />;
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

function App() {
  const { data } = usePoll<MeView>('me', 60_000);
  useProbe();
  const [trouble] = troubles.value.values();
  const current = pageOf(path.value);
  const title = current?.[1] ?? '';
  useEffect(() => {
    if (data) setMe(data);
  }, [data]);
  useEffect(() => {
    document.title = visible(`${subject.value ?? title} · ${settings.title}`);
  }, [subject.value, title]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        To the content
      </button>
      <Header page={current?.[0]} />
      {trouble !== undefined && (
        <p class="notice bad away" role="alert">
          {me.value === null ? (
            <>
              <strong>There is no data yet.</strong> {trouble}
            </>
          ) : (
            <>
              <strong>The data is out of date.</strong> {trouble} No data since{' '}
              {moment(troubleSince.value ?? 0)}.
            </>
          )}{' '}
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
      <Help />
      <Dialog />
    </>
  );
}

// Applies to the texts of all elements, and to labels and titles. The text of a field that is edited stays as it is.
const plain = (child: unknown) => (typeof child === 'string' ? visible(child) : child);
const before = options.vnode?.bind(options);
options.vnode = (vnode) => {
  const props = vnode.props as { children?: unknown } & Record<string, unknown>;
  const { children } = props;
  for (const name of ['aria-label', 'title'])
    if (typeof vnode.type === 'string' && name in props) props[name] = plain(props[name]);
  if ((typeof vnode.type === 'string' || vnode.type === Fragment) && children !== undefined)
    props.children = Array.isArray(children) ? children.map(plain) : plain(children);
  before?.(vnode);
};

render(<App />, document.getElementById('app')!);
