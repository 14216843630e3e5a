/** Draws schedules and their runs. Whatever comes from outside becomes a text node, never markup. */

const STATES = {
  waiting: 'Waiting',
  active: 'Running',
  delayed: 'Later',
  completed: 'Done',
  dead: 'Failed',
};

/** As many runs as a strip shows. */
const STRIP = 24;

/** Makes an element: `h('b', { class: 'loud' }, 'text', child)`. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

// ------------------------------------------------------------------------------------------------------- one schedule

/** The row of a schedule. Its buttons stay the same elements for good, so that one keeps the focus. */
export function createSchedule(id, { act }) {
  const button = (name, action) =>
    h('button', { type: 'button', 'data-act': name, click: () => act(id, action()) }, '');
  const run = button('run', () => 'run');
  const pause = button('pause', () => (row.dataset.paused === 'true' ? 'resume' : 'pause'));
  const row = h(
    'li',
    { class: 'schedule', 'data-id': id },
    h('div', { class: 'what' }),
    h('div', { class: 'next' }),
    h('div', { class: 'last' }),
    h('div', { class: 'acts' }, run, pause),
  );
  run.textContent = 'Run now';
  return row;
}

export function updateSchedule(row, schedule, runs) {
  row.dataset.paused = String(schedule.paused);
  const [what, next, last] = row.children;
  what.replaceChildren(
    h('strong', {}, schedule.id),
    h('span', { class: 'rule' }, schedule.rule),
    h('span', { class: 'more' }, schedule.more.join(' · ')),
  );
  next.replaceChildren(...nextOf(schedule));
  last.replaceChildren(strip(runs), h('span', { class: 'more' }, lastOf(runs)));
  row.querySelector('[data-act=pause]').textContent = schedule.paused ? 'Resume' : 'Pause';
}

function nextOf({ paused, next, zone }) {
  if (paused) return [h('span', { class: 'count' }, 'paused'), h('span', { class: 'more' }, 'until resumed')];
  if (next === null) return [h('span', { class: 'count' }, 'ended'), h('span', { class: 'more' }, '')];
  const at = new Date(next);
  return [
    h('span', { class: 'count', 'data-due': at.getTime() }, inWords(at)),
    h('time', { class: 'more', datetime: next }, wallClock(at, zone)),
  ];
}

function strip(runs) {
  const shown = runs.slice(-STRIP);
  const label = shown.length === 0 ? 'no runs yet' : `the last ${shown.length} runs`;
  return h(
    'span',
    { class: 'strip', role: 'img', 'aria-label': label },
    ...shown.map((run) =>
      h('i', { 'data-state': run.state, title: `${STATES[run.state]}, ${clock(run.at)}` }),
    ),
  );
}

function lastOf(runs) {
  const run = runs.findLast(({ state }) => state === 'completed' || state === 'dead' || state === 'active');
  if (!run) return 'no run yet';
  if (run.state === 'active') return `running since ${clock(run.startedAt ?? run.at)}`;
  return `${run.state === 'dead' ? 'failed' : 'ran'} at ${clock(run.startedAt ?? run.at)}${took(run)}`;
}

// ------------------------------------------------------------------------------------------------------------ one run

export function createRun(run) {
  const row = h('li', { class: 'run', 'data-id': run.id });
  updateRun(row, run);
  return row;
}

export function updateRun(row, run) {
  row.dataset.state = run.state;
  row.replaceChildren(
    h('span', { class: 'badge', 'data-state': run.state }, STATES[run.state]),
    h('span', { class: 'of' }, run.schedule),
    h('span', { class: 'said' }, said(run)),
    h('time', { datetime: run.at.toISOString() }, clock(run.startedAt ?? run.at)),
  );
}

function said({ state, attempt, message, durationMs, byHand }) {
  const parts = byHand ? ['run by hand'] : [];
  if (attempt > 1) parts.push(`attempt ${attempt}`);
  if (message !== undefined && state !== 'completed') parts.push(message);
  if (state === 'completed' && durationMs !== undefined) parts.push(`took ${length(durationMs)}`);
  return parts.join(' · ');
}

// --------------------------------------------------------------------------------------------------------------- time

/** Counts down what is due. */
export function tick(list) {
  for (const element of list.querySelectorAll('[data-due]')) {
    const text = inWords(new Date(Number(element.dataset.due)));
    if (element.textContent !== text) element.textContent = text;
  }
}

function inWords(at) {
  const left = at.getTime() - Date.now();
  if (left <= 0) return 'now';
  const minutes = Math.floor(left / 60_000);
  if (minutes < 1) return `in ${(left / 1000).toFixed(1)} s`;
  if (minutes < 60) return `in ${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `in ${hours} h ${minutes % 60} min`;
  return `in ${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The moment as the wall clock of the schedule's zone shows it, without the day if it is less than an hour away. */
function wallClock(at, zone) {
  const soon = at.getTime() - Date.now() < 3_600_000;
  if (soon && !zone) return `at ${clock(at)}`;
  const timeZone = zone ?? 'UTC';
  const text = at.toLocaleString('en-GB', {
    ...(soon ? { second: '2-digit' } : { weekday: 'short', day: 'numeric', month: 'short' }),
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
  });
  return `${soon ? 'at ' : ''}${text} in ${timeZone.replace(/^.*\//, '').replaceAll('_', ' ')}`;
}

function took({ durationMs }) {
  return durationMs === undefined ? '' : `, took ${length(durationMs)}`;
}

function length(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function clock(date) {
  return date.toLocaleTimeString('en-GB');
}
