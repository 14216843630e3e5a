import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Report {
  testResults: { assertionResults: { title: string; status: string; failureMessages: string[] }[] }[];
}

it('a test that leaves a key, client, timer, thread or process behind fails, and says which', async () => {
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--config',
    'test/support-specs/leaks/vitest.config.ts',
  ];
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, [...args, '--reporter=json'], { cwd: root, maxBuffer: 1e8 }, (_, stdout) =>
      resolve(stdout),
    );
  });
  const report = JSON.parse(output.slice(output.indexOf('{'))) as Report;
  const tests = report.testResults.flatMap((file) => file.assertionResults);
  expect(tests).toHaveLength(16);
  for (const { title, status, failureMessages } of tests) {
    const [, verdict, text] = /^(\w+): (.*)$/.exec(title)!;
    expect(status, `${title}: ${failureMessages.join('\n')}`).toBe(verdict === 'fails' ? 'failed' : 'passed');
    if (verdict !== 'fails') continue;
    const said = failureMessages
      .join('\n')
      .replace(/\{[^{}:]*:mail\}/g, '<queue>')
      .replace(/[a-z]+(-[0-9a-f]{8}){2}/g, '<prefix>');
    expect(said).toContain(text);
  }
}, 60_000);
