/** Draws deliveries. Whatever comes from outside becomes a text node, never markup. */

const STATES = {
  waiting: 'Waiting',
  active: 'Delivering',
  delayed: 'Retrying',
  completed: 'Delivered',
  dead: 'Dead',
};

const REASONS = {
  unrecoverable: 'the answer says that another attempt cannot help',
  'retries-exhausted': 'no attempts are left',
  stalled: 'it took down the process that delivered it, again and again',
  expired: 'it waited too long',
};

const MAX_DOTS = 10;

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

/** The row of a delivery. It stays the same element for good, so that one which is open stays open. */
export function createRow(delivery, actions) {
  const row = h('details', { class: 'delivery', 'data-id': delivery.id });
  updateRow(row, delivery, actions);
  return row;
}

export function updateRow(row, delivery, actions) {
  row.dataset.state = delivery.state;
  row.replaceChildren(summary(delivery), body(delivery, actions));
}

function summary({ state, runs, at, dueAt, details }) {
  return h(
    'summary',
    {},
    h('span', { class: 'badge', 'data-state': state }, STATES[state]),
    h(
      'span',
      { class: 'what' },
      h('span', { class: 'event' }, details?.event ?? '…'),
      h('span', { class: 'url' }, details?.url ?? ''),
    ),
    h(
      'span',
      { class: 'tries', role: 'img', 'aria-label': triesInWords(runs) },
      ...runs.slice(-MAX_DOTS).map(dot),
    ),
    h(
      'span',
      { class: 'note' },
      dueAt ? h('span', { 'data-due': dueAt.getTime() }, inSeconds(dueAt)) : outcome(state, runs),
    ),
    h('time', { datetime: at.toISOString() }, clock(at)),
  );
}

function dot({ outcome: how, attempt, message }) {
  return h('i', { 'data-outcome': how, title: `Attempt ${attempt}: ${message ?? how}` });
}

function triesInWords(runs) {
  return runs.length === 1 ? '1 attempt' : `${runs.length} attempts`;
}

function outcome(state, runs) {
  if (state === 'active') return `attempt ${runs.at(-1)?.attempt ?? 1}`;
  if (state === 'waiting') return 'in line';
  return triesInWords(runs);
}

function body(delivery, { retry }) {
  const { id, state, reason, runs, details } = delivery;
  const parts = [h('ol', { class: 'timeline' }, ...runs.map((run) => runItem(run, details?.attempts)))];
  if (runs.length === 0) parts[0] = h('p', { class: 'hint' }, 'Not tried yet.');
  if (state === 'dead') {
    const why = `It is dead: ${REASONS[reason] ?? reason ?? 'it gave up'}. It is kept until somebody decides.`;
    const button = h('button', { type: 'button', click: () => retry(id) }, 'Try again');
    parts.push(h('div', { class: 'verdict' }, h('p', {}, why), button));
  }
  parts.push(h('h3', {}, 'Body'), h('pre', {}, JSON.stringify(details?.body, null, 2) ?? ''));
  parts.push(h('p', { class: 'id' }, h('a', { href: `/webhooks/${encodeURIComponent(id)}` }, id)));
  return h('div', { class: 'body' }, ...parts);
}

function runItem({ attempt: number, at, outcome: how, message, durationMs, retryInMs, again }, attempts) {
  const title = `Attempt ${number}${attempts ? ` of ${attempts}` : ''}`;
  const said = how === 'running' ? 'under way' : how === 'delivered' ? 'delivered' : (message ?? how);
  return h(
    'li',
    { 'data-outcome': how },
    h('div', { class: 'attempt' }, h('strong', {}, title), h('span', { class: 'said' }, said)),
    h(
      'div',
      { class: 'when' },
      [again && 'asked for by a person', clock(at), durationMs === undefined ? '' : took(durationMs)]
        .concat(retryInMs === undefined ? '' : `next in ${seconds(retryInMs)}`)
        .filter(Boolean)
        .join(' · '),
    ),
  );
}

/** Counts down what is due; answers whether anything is. */
export function tick(list) {
  const due = list.querySelectorAll('[data-due]');
  for (const element of due) element.textContent = inSeconds(new Date(Number(element.dataset.due)));
  return due.length > 0;
}

function inSeconds(date) {
  const left = date.getTime() - Date.now();
  return left > 0 ? `retry in ${seconds(left)}` : 'retry due';
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

function took(ms) {
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : seconds(ms);
}

function clock(date) {
  return date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
}
