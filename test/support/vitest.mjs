import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Runs these spec files in a process of their own, and ends this one with its exit code. */
export function runVitest(specs, env) {
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...specs, '--disable-console-intercept'];
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const child = spawn(process.execPath, args, { cwd, env: { ...process.env, ...env }, stdio: 'inherit' });
  child.on('exit', (code) => (process.exitCode = code ?? 1));
}
