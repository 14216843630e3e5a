// The combinations of platform, module format and versions with which the packed library is tested.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
export const installed = (name) => read(join(ROOT, 'node_modules', name, 'package.json')).version;

const { peerDependencies: peers } = read(join(ROOT, 'package.json'));
/** `5.4.0` of `^5.4.0 || ^6.0.0`. */
const floorOf = (name) => /\d+\.\d+\.\d+/.exec(peers[name])[0];

const NEST_11 = { '@nestjs/common': '11.2.10', '@nestjs/core': '11.2.10' };
const NEST_12 = { '@nestjs/common': installed('@nestjs/common'), '@nestjs/core': installed('@nestjs/core') };
/** Packages that applications also install, and those that the subpaths integrate. */
const BESIDE_11 = {
  '@nestjs/terminus': '11.1.1',
  '@nestjs/testing': '11.2.6',
  '@opentelemetry/api': '1.9.1',
};
const BESIDE_12 = {
  '@nestjs/terminus': installed('@nestjs/terminus'),
  '@nestjs/testing': installed('@nestjs/testing'),
  '@opentelemetry/api': installed('@opentelemetry/api'),
};
const REST = { 'reflect-metadata': installed('reflect-metadata'), rxjs: installed('rxjs') };

/**
 * Each row builds the same application. Together the rows cover every supported major of Nest, ioredis and
 * TypeScript, both platforms and both module formats. The last row has the oldest version that each peer
 * range allows.
 */
export const APPS = [
  {
    name: 'Nest 12, express, ESM, ioredis 6, TypeScript 6.0',
    type: 'module',
    typescript: '6.0.3',
    beside: BESIDE_12,
    peers: { ...NEST_12, ...REST, ioredis: '6.0.0' },
    platform: { '@nestjs/platform-express': installed('@nestjs/platform-express') },
  },
  {
    name: 'Nest 12, fastify, CommonJS, ioredis 5, TypeScript 7.0',
    type: 'commonjs',
    typescript: '7.0.2',
    beside: BESIDE_12,
    peers: { ...NEST_12, ...REST, ioredis: '5.11.1' },
    platform: { '@nestjs/platform-fastify': installed('@nestjs/platform-fastify') },
  },
  {
    name: 'Nest 11, express, CommonJS, ioredis 5, TypeScript 5.9',
    type: 'commonjs',
    typescript: '5.9.3',
    beside: BESIDE_11,
    peers: { ...NEST_11, ...REST, ioredis: '5.11.1' },
    platform: { '@nestjs/platform-express': '11.2.10' },
  },
  {
    name: 'Nest 11, fastify, ESM, ioredis 6, TypeScript 6.0',
    type: 'module',
    typescript: '6.0.3',
    beside: BESIDE_11,
    peers: { ...NEST_11, ...REST, ioredis: '6.0.0' },
    platform: { '@nestjs/platform-fastify': '11.2.8' },
  },
  {
    name: 'the oldest versions, express, CommonJS, TypeScript 5.9',
    type: 'commonjs',
    typescript: '5.9.3',
    beside: {
      '@nestjs/terminus': '11.0.0',
      '@nestjs/testing': '11.0.0',
      '@opentelemetry/api': floorOf('@opentelemetry/api'),
    },
    peers: Object.fromEntries(
      Object.keys(NEST_11)
        .concat('ioredis', Object.keys(REST))
        .map((name) => [name, floorOf(name)]),
    ),
    platform: { '@nestjs/platform-express': '11.0.0' },
  },
];

/**
 * Versions of Node besides the one that runs this script: the oldest that `engines` allows, and the newest of
 * each later major.
 */
export const NODES = ['20.19.0', '22.23.3', '24.21.0'];

/** Installs a Node from the registry and returns the path of its program. */
export async function installNode(version, temp) {
  const folder = join(temp, `node-${version}`);
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', `node@${version}`], {
    cwd: folder,
  });
  return join(folder, 'node_modules/node/bin/node');
}
