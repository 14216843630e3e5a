import { Deliveries } from './deliveries.js';
import { createRow, h, tick, updateRow } from './view.js';

const byId = (id) => document.getElementById(id);
const list = byId('deliveries');
const deliveries = new Deliveries();
const rows = new Map();

// ------------------------------------------------------------------------------------------------ what the server says

/** Deliveries that have changed since the last drawing. */
const changed = new Set();
let drawing;
let stale = false;

function listen() {
  // From the beginning; after a lost connection the browser itself asks for what came after the last event it had.
  const source = new EventSource('/webhooks/live?since=0');
  source.addEventListener('open', () => {
    show('live', 'Live');
    notify('');
    // Anew each time: the receiver has another port after a restart.
    offerExamples().catch(complain);
    changeSoon();
  });
  source.addEventListener('error', () => {
    show('lost', 'Reconnecting');
    // The browser gives up where the answer is no stream of events, such as that of a proxy while we restart.
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2_000);
  });
  source.addEventListener('message', ({ data }) => {
    const delivery = deliveries.apply(JSON.parse(data));
    if (delivery) changed.add(delivery);
    changeSoon();
  });
}

function show(state, text) {
  const connection = byId('connection');
  connection.dataset.state = state;
  connection.textContent = text;
}

/** One drawing for all events that arrive together, and one after the other. */
function changeSoon() {
  drawing ??= setTimeout(() => void drawStale(), 30);
  stale = true;
}

async function drawStale() {
  stale = false;
  await draw().catch(complain);
  drawing = undefined;
  if (stale) changeSoon();
}

async function draw() {
  const now = [...changed].filter((delivery) => deliveries.byId.get(delivery.id) === delivery);
  await Promise.all([count(), ...now.filter(({ details }) => !details).map(describe)]);
  for (const delivery of now) {
    changed.delete(delivery);
    drawRow(delivery);
  }
  for (const [id, row] of rows) {
    if (deliveries.byId.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  byId('empty').hidden = rows.size > 0;
  byId('more').hidden = deliveries.dropped === 0;
  byId('more').textContent = `The last ${rows.size} are shown; ${deliveries.dropped} came before them.`;
  countDown();
}

function drawRow(delivery) {
  const row = rows.get(delivery.id);
  if (row) return updateRow(row, delivery, { retry });
  const created = createRow(delivery, { retry });
  rows.set(delivery.id, created);
  list.prepend(created);
}

async function describe(delivery) {
  const response = await fetch(`/webhooks/${encodeURIComponent(delivery.id)}`);
  if (response.ok) delivery.details = await response.json();
  // Completed ones are forgotten after a while, but their events may still be there.
  else if (response.status === 404) delivery.details = { event: 'no longer kept', url: '' };
  else throw new Error(`it answered ${response.status}`);
}

async function count() {
  const response = await fetch('/webhooks');
  if (!response.ok) throw new Error(`it answered ${response.status}`);
  for (const [state, number] of Object.entries(await response.json())) {
    const place = document.querySelector(`#counts [data-state='${state}'] dd`);
    if (place) place.textContent = number.toLocaleString();
  }
}

let counting;
function countDown() {
  counting ??= setInterval(() => {
    if (tick(list)) return;
    clearInterval(counting);
    counting = undefined;
  }, 100);
}

// ------------------------------------------------------------------------------------------------- what the visitor does

async function post(path, content) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(content ?? {}),
  });
  if (response.ok) return;
  const { message } = await response.json();
  notify(`Refused with ${response.status}: ${[message].flat().join('; ')}`);
}

/** In the order given, so that they come in the order of the buttons. */
async function send(...webhooks) {
  notify('');
  try {
    for (const webhook of webhooks) await post('/webhooks', webhook);
  } catch (error) {
    complain(error);
  }
}

function retry(id) {
  notify('');
  post(`/webhooks/${encodeURIComponent(id)}/retry`).catch(complain);
}

function notify(text) {
  byId('notice').textContent = text;
  byId('notice').hidden = text === '';
}

function complain(error) {
  notify(`The server cannot be reached (${error.message})`);
}

let accepted = [];
byId('send-all').addEventListener('click', () => void send(...accepted));

async function offerExamples() {
  const response = await fetch('/examples');
  const examples = await response.json();
  byId('examples').replaceChildren(...examples.map(exampleButton));
  accepted = examples.filter(({ refused }) => !refused).map(({ webhook }) => webhook);
}

function exampleButton({ title, says, refused, webhook }) {
  const attributes = { type: 'button', 'data-example': title, click: () => void send(webhook) };
  if (refused) attributes['data-refused'] = '';
  return h('button', attributes, h('strong', {}, title), h('span', {}, says));
}

byId('own').addEventListener('submit', (event) => {
  event.preventDefault();
  const { url, event: name, body } = Object.fromEntries(new FormData(event.target));
  try {
    void send({ url, event: name, body: JSON.parse(body) });
  } catch (error) {
    notify(`The body is not JSON: ${error.message}`);
  }
});

listen();
