// A process with alerts and nothing else: url, prefix, port of the receiver.
const { createAlerts, webhook } = require('../../../dist/subpaths/alerts.js');

const [url, prefix, port] = process.argv.slice(2);
createAlerts({
  connection: url,
  prefix,
  interval: '1s',
  source: String(process.pid),
  rules: [{ rule: 'backlog', limit: 2, resolve: 0, cooldown: 0 }],
  notify: webhook({ url: `http://127.0.0.1:${port}/`, timeout: '8s' }),
});
process.send('started');
