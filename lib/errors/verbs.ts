/**
 * Verbs of the engine that are not called like the public method or task that they belong to. A script has the name of its verb, with
 * hyphens.
 */
const CALLS: Readonly<Record<string, string>> = {
  actions: 'inspector.actions',
  adopt: 'recover jobs',
  anyOf: 'wake workers',
  auditPage: 'audit',
  awaitBell: 'wait for jobs',
  beat: 'renew a lease',
  bulkActs: 'bulkActs.list',
  cancelAll: 'cancel',
  cancelled: 'addAndWait',
  charge: 'count starts',
  claim: 'claim jobs',
  claimLimited: 'claim jobs',
  claimUpkeep: 'upkeep',
  clean: 'remove',
  countMinutes: 'inspector.series',
  deadThatFit: 'upkeep',
  declare: 'register schedules',
  dueSchedules: 'run schedules',
  enqueue: 'add',
  enqueueBegin: 'add',
  enqueueEnd: 'add',
  enqueuePlain: 'add',
  exchange: 'claim and settle jobs',
  findSlots: 'find the nodes of the cluster',
  fire: 'run schedules',
  freeKeys: 'add',
  handles: 'register handlers',
  lastEvent: 'events',
  lastFull: 'inspector.queues',
  lead: 'evaluate alerts',
  limits: 'limits.list',
  list: 'inspector.workers',
  listWorkers: 'inspector.workers',
  look: 'look for jobs',
  minutes: 'inspector.series',
  note: 'job.progress or job.log',
  ofWorker: 'inspector.workers',
  oldest: 'inspector.queues',
  oldestWaitingMs: 'inspector.queues',
  open: 'connect',
  openEvents: 'events',
  order: 'inspector.processes',
  memoryBytes: 'measure the memory of the queue',
  overdue: 'recover jobs',
  overgrown: 'upkeep',
  page: 'jobs',
  pauseSchedule: 'schedules.pause',
  promote: 'start due jobs',
  promoteNow: 'promote',
  putBulkAct: 'bulkActs',
  putSchedule: 'schedules.upsert',
  queues: 'inspector.queues',
  readEvents: 'events',
  record: 'record an action',
  recordAction: 'record an action',
  recover: 'recover jobs',
  register: 'register the process',
  release: 'give jobs back',
  removeAll: 'remove',
  removeDead: 'remove',
  removeSchedule: 'schedules.remove',
  renew: 'renew a lease',
  report: 'report runs to breakers',
  resumeSchedule: 'schedules.resume',
  retryDead: 'dead.retry',
  ring: 'wake workers',
  scheduled: 'register schedules',
  schedules: 'schedules.list',
  serverInfo: 'read the facts of the server',
  setLimits: 'limits.set',
  share: 'claim jobs',
  shared: 'limits.list',
  trim: 'upkeep',
  tryWrite: 'try a write',
  unhandledMs: 'look for handlers',
  unregister: 'register the process',
  wakeLines: 'limits.set',
  withdraw: 'register schedules',
  // The first step of get, counts, cancel and others.
  workers: 'read the queue',
};

/** The public name of the call behind this verb of the engine. */
export function callOf(verb: string): string {
  const name = inCamelCase(verb);
  return CALLS[name] ?? name;
}

/** The verb of the engine behind this public name. */
export function verbOf(call: string): string {
  return Object.keys(CALLS).find((verb) => CALLS[verb] === call) ?? call;
}

/** Verbs that only read. The error of such a call says nothing about its effect. */
const READS: ReadonlySet<string> = new Set([
  'actions',
  'audit',
  'auditPage',
  'bulkActs',
  'counts',
  'deadThatFit',
  'dueSchedules',
  'get',
  'jobs',
  'lastEvent',
  'lastFull',
  'limits',
  'listWorkers',
  'look',
  'memoryBytes',
  'minutes',
  'oldest',
  'overdue',
  'overgrown',
  'page',
  'queues',
  'readEvents',
  'schedules',
  'serverInfo',
  'stats',
  'workers',
]);

export function isRead(verb: string): boolean {
  return READS.has(inCamelCase(verb));
}

function inCamelCase(verb: string): string {
  return verb.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}
