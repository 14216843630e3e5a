// A reporter of Vitest. It writes the result of each spec file to the file that GODWIT_SPEC_REPORT names, again after
// each spec file, so that a killed run shows how far it came.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

export default class SpecReporter {
  files = {};
  /** Files that were started and have not ended. */
  running = [];
  /** Errors outside of any file. */
  errors = 0;

  onTestModuleQueued(module) {
    this.running.push(nameOf(module.moduleId));
    this.write();
  }

  onTestModuleEnd(module) {
    const name = nameOf(module.moduleId);
    const tests = [...module.children.allTests()].map((test) => test.result().state);
    const count = (state) => tests.filter((one) => one === state).length;
    const failed = count('failed');
    // A file that could not be loaded, or with a failed hook, may have no failed test.
    const isBroken = module.state() === 'failed' && failed === 0;
    this.files[name] = {
      passed: count('passed'),
      failed: failed + (isBroken ? 1 : 0),
      ms: Math.round(module.diagnostic().duration),
    };
    this.running = this.running.filter((one) => one !== name);
    this.write();
  }

  onTestRunEnd(_modules, unhandledErrors) {
    for (const { VITEST_TEST_PATH: path } of unhandledErrors) {
      const file = path && this.files[nameOf(path)];
      if (file) file.failed += 1;
      else this.errors += 1;
    }
    this.write();
  }

  write() {
    const { files, running, errors } = this;
    writeFileSync(process.env['GODWIT_SPEC_REPORT'], JSON.stringify({ files, running, errors }));
  }
}

function nameOf(path) {
  return relative(process.cwd(), path);
}
