// The page: one stream of events from the proxy, and a view that draws what it has. Views are chosen by the fragment.

import { h, percent, rate } from './dom.js';
import { table } from './table.js';
import { topology } from './topology.js';
import { service } from './service.js';
import { explain } from './explain.js';
import { tap } from './tap.js';
import { changes } from './changes.js';
import { findings } from './findings.js';

const VIEWS = {
  topology: ['Topology', topology],
  hosts: ['Hosts', table('host')],
  rules: ['Rules', table('rule')],
  destinations: ['Services', table('destination')],
  clusters: ['Clusters', table('cluster')],
  endpoints: ['Endpoints', table('endpoint')],
  explain: ['Explain', explain],
  tap: ['Tap', tap],
  findings: ['Findings', findings],
  changes: ['Changes', changes],
  service: [null, service],
};

const main = document.getElementById('view');
let source = null;
let current = null;

// Asks the proxy for what is on the screen, once per second.
function stream(query) {
  source?.close();
  source = new EventSource(`/live?${new URLSearchParams(query)}`);
  source.onmessage = (event) => {
    document.getElementById('problem').textContent = '';
    const message = JSON.parse(event.data);
    if (message.interval_seconds > 0) sum(message);
    history.keep(message);
    current?.update?.(message);
  };
  source.onerror = () => {
    document.getElementById('problem').textContent = 'The proxy does not answer; trying again.';
  };
}

function sum(message) {
  const share = message.rate > 0 ? (message.failed / message.rate) * 100 : null;
  document.getElementById('sum').textContent =
    `${message.version}, generation ${message.generation}: ${rate(message.rate)} req/s, ${percent(share)} failed, ` +
    `${message.active} active` + (message.rejected.length ? `, ${message.rejected.length} rejected` : '');
}

// Changes that were seen since the page was opened, and those that the proxy still knew then.
const history = {
  all: [],
  known: new Set(),
  keep(message) {
    const now = Date.now();
    for (const event of message.events) {
      // each stream begins with all events that the proxy has
      const key = `${event.number} ${event.kind} ${event.cluster} ${event.endpoint}`;
      if (this.known.has(key)) continue;
      this.known.add(key);
      this.all.push({ at: now - event.seconds_ago * 1000, kind: event.kind, text: `${event.cluster} ${event.endpoint ?? ''} ${event.message}` });
    }
    for (const text of message.changes.filter((change) => change.startsWith('configuration: '))) {
      this.all.push({ at: now, kind: 'configuration', text: text.slice('configuration: '.length) });
    }
    this.all = this.all.slice(-500);
  },
};

function show() {
  const [name, ...rest] = (location.hash.slice(2) || 'topology').split('/');
  const [title, view] = VIEWS[name] ?? VIEWS.topology;
  current?.close?.();
  main.replaceChildren();
  current = view({ main, stream, history, argument: decodeURIComponent(rest.join('/')) });
  document.title = `Strait: ${title ?? decodeURIComponent(rest.join('/'))}`;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.hash === `#/${name}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

document.getElementById('views').append(
  ...Object.entries(VIEWS)
    .filter(([, [title]]) => title)
    .map(([name, [title]]) => h('li', {}, h('a', { href: `#/${name}` }, title))));
addEventListener('hashchange', () => { show(); main.focus(); });
show();
