import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Handle, Processor, QueueModule, getQueueToken, QueueRuntime } from './dist/index.js';
import { startRedis } from './tools/redis.mjs';
const [,, N='60000', C='10', ms='0', rounds='3'] = process.argv;
const server = await startRedis({ private: true });
let count = 0, done;
async function once(queues, target, n, seed) {
  class P { run() { if (++count === n) done(); if (+ms) return new Promise(r => setTimeout(r, +ms)); } }
  Handle()(P.prototype, 'run', Object.getOwnPropertyDescriptor(P.prototype, 'run'));
  Processor(queues, { concurrency: +C })(P);
  class App {}
  const names = typeof queues === 'string' ? [queues] : Array.isArray(queues) ? queues : Object.keys(queues);
  Module({ imports: [QueueModule.forRoot({ connection: server.url, autoStart: false, prefix: 'r' + seed }), ...names.map(name => QueueModule.registerQueue({ name }))], providers: [P] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: ['error'] });
  const q = app.get(getQueueToken(target), { strict: false });
  for (let i = 0; i < n; i += 1000) await q.addBulk(Array.from({ length: Math.min(1000, n - i) }, (_, k) => ({ name: 'j', data: k })));
  count = 0;
  const ended = new Promise(r => done = r);
  const t = performance.now();
  await app.get(QueueRuntime).start();
  await ended;
  const took = performance.now() - t;
  await app.close();
  return n / took * 1000;
}
const kinds = { single: ['z'], strict: [['a', 'b', 'z']], weighted: [{ a: 6, b: 3, z: 1 }] };
const res = { single: [], strict: [], weighted: [] };
let seed = 0;
for (const [k, [q]] of Object.entries(kinds)) await once(q, 'z', Math.min(+N, 20000), seed++);
for (let r = 0; r < +rounds; r++) for (const [k, [q]] of Object.entries(kinds)) res[k].push(await once(q, 'z', +N, seed++));
const med = a => a.toSorted((x, y) => x - y)[a.length >> 1];
for (const k in res) console.log(k, Math.round(med(res[k])), (med(res[k]) / med(res.single)).toFixed(3), res[k].map(Math.round).join(' '));
await server.stop();
process.exit(0);
