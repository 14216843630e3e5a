/** Every kind of fault: its flag, its description, and how often it happens in a normal run. */
export const FAULTS = {
  'worker-kill': {
    flag: 'worker-kills',
    usual: 8,
    what: 'SIGKILL of a worker: any time, behind a handler, or in a settlement',
  },
  'worker-stop': { flag: 'worker-stops', usual: 3, what: 'SIGSTOP of a worker past its lease, then SIGCONT' },
  'worker-term': { flag: 'worker-terms', usual: 2, what: 'SIGTERM of a worker, as a deployment does' },
  'producer-kill': {
    flag: 'producer-kills',
    usual: 3,
    what: 'SIGKILL of a producer in the middle of addBulk',
  },
  'redis-kill': {
    flag: 'redis-kills',
    usual: 2,
    what: 'SIGKILL of Redis, and a restart from its append-only file',
  },
  'redis-stall': { flag: 'redis-stalls', usual: 3, what: 'SIGSTOP, CLIENT PAUSE or DEBUG SLEEP of Redis' },
  'client-kill': { flag: 'client-kills', usual: 3, what: 'CLIENT KILL of every connection' },
  cut: { flag: 'cuts', usual: 10, what: 'a connection cut after a random number of bytes, up or down' },
  delay: { flag: 'delays', usual: 2, what: 'a process whose connections are slow for some seconds' },
  'half-open': { flag: 'half-opens', usual: 3, what: 'connections that go silent and are not closed' },
  bandwidth: {
    flag: 'bandwidths',
    usual: 2,
    what: 'a process whose line carries some 20 to 200 KB a second',
  },
  loss: {
    flag: 'losses',
    usual: 3,
    what: 'connections on which nothing arrives for up to 2 s, and then all of it, as where packets are lost',
  },
  late: {
    flag: 'lates',
    usual: 1,
    what: 'what a process has sent arrives up to 9 s late, when it has called again by another connection',
  },
  'script-flush': { flag: 'script-flushes', usual: 4, what: 'SCRIPT FLUSH' },
  'aof-cut': {
    flag: 'aof-cuts',
    usual: 0,
    what: 'SIGKILL of Redis, and the last KB of its append-only file are gone, as after a power loss; with --jobs 0 only',
  },
  'full-memory': { flag: 'full-memory', usual: 1, what: 'maxmemory reached for some seconds' },
  'full-disk': { flag: 'full-disk', usual: 1, what: 'no byte more may be written to the append-only file' },
  poison: { flag: 'poison', usual: 1, what: 'a job that kills every process it runs in' },
  blocker: { flag: 'blockers', usual: 2, what: 'a job that blocks the event loop longer than a lease' },
} as const;

export type FaultKind = keyof typeof FAULTS;
