import { Runs } from './runs.js';
import { createRun, createSchedule, tick, updateRun, updateSchedule } from './view.js';

const byId = (id) => document.getElementById(id);
const MAX_SHOWN = 30;
const runs = new Runs();
const scheduleRows = new Map();
const runRows = new Map();

// ------------------------------------------------------------------------------------------------ what the server says

let schedules = [];
let drawing;
let stale = false;

function listen() {
  // From the beginning; after a lost connection the browser itself asks for what came after the last event it had.
  const source = new EventSource('/schedules/live?since=0');
  source.addEventListener('open', () => {
    show('live', 'Live');
    notify('');
    drawSoon();
  });
  source.addEventListener('error', () => {
    show('lost', 'Reconnecting');
    // The browser gives up where the answer is no stream of events, such as that of a proxy while we restart.
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2_000);
  });
  source.addEventListener('message', ({ data }) => {
    if (runs.apply(JSON.parse(data))) drawSoon();
  });
}

function show(state, text) {
  const connection = byId('connection');
  connection.dataset.state = state;
  connection.textContent = text;
}

/** One drawing for all events that arrive together, and one after the other. */
function drawSoon() {
  drawing ??= setTimeout(() => void drawStale(), 30);
  stale = true;
}

async function drawStale() {
  stale = false;
  await draw().catch(complain);
  drawing = undefined;
  if (stale) drawSoon();
}

async function draw() {
  const response = await fetch('/schedules');
  if (!response.ok) throw new Error(`it answered ${response.status}`);
  schedules = await response.json();
  drawSchedules();
  drawRuns();
}

function drawSchedules() {
  for (const schedule of schedules) {
    const row = scheduleRows.get(schedule.id) ?? createSchedule(schedule.id, { act });
    scheduleRows.set(schedule.id, row);
    updateSchedule(row, schedule, runs.of(schedule.id));
    if (!row.isConnected) byId('schedules').append(row);
  }
  const known = new Set(schedules.map(({ id }) => id));
  drop(scheduleRows, (id) => known.has(id));
}

function drawRuns() {
  const shown = [...runs.byId.values()].slice(-MAX_SHOWN);
  for (const run of shown) {
    const row = runRows.get(run.id);
    if (row) updateRun(row, run);
    else {
      runRows.set(run.id, createRun(run));
      byId('runs').prepend(runRows.get(run.id));
    }
  }
  const known = new Set(shown.map(({ id }) => id));
  drop(runRows, (id) => known.has(id));
  byId('empty').hidden = runRows.size > 0;
}

function drop(rows, isKept) {
  for (const [id, row] of rows) {
    if (isKept(id)) continue;
    row.remove();
    rows.delete(id);
  }
}

// ------------------------------------------------------------------------------------------------ what the visitor does

async function act(id, action) {
  notify('');
  try {
    const response = await fetch(`/schedules/${encodeURIComponent(id)}/${action}`, { method: 'POST' });
    if (!response.ok) notify(`Refused with ${response.status}: ${(await response.json()).message}`);
    drawSoon();
  } catch (error) {
    complain(error);
  }
}

function notify(text) {
  byId('notice').textContent = text;
  byId('notice').hidden = text === '';
}

function complain(error) {
  notify(`The server cannot be reached (${error.message})`);
}

setInterval(() => tick(byId('schedules')), 100);
listen();
