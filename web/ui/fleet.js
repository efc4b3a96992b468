// The page of a config server: the proxies that follow it, the revision that each has in effect, and what they reject.
// It lists and watches the reports of proxies, as `kubectl get proxies --watch` does.

import { ROW_HEIGHT, h, simpleTable, spacer } from './dom.js';

const GROUP = '/apis/strait.io/v1alpha1';
const ROWS = 60;
const PAUSE = 1000;

const main = document.getElementById('view');
const say = (id, text) => { document.getElementById(id).textContent = text; };

class Refused extends Error {}

// The token is in the memory of this page alone.
let login = { token: '', namespace: '' };
let proxies = new Map();
let view = null;

async function ask(query) {
  const path = login.namespace ? `${GROUP}/namespaces/${encodeURIComponent(login.namespace)}/proxies` : `${GROUP}/proxies`;
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`, { headers: { authorization: `Bearer ${login.token}` }, cache: 'no-store' });
  if (answer.ok) return answer;
  const { message } = await answer.json().catch(() => ({ message: `status ${answer.status}` }));
  if ([401, 403].includes(answer.status)) throw new Refused(message);
  throw new Error(message);
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n');
    rest = parts.pop();
    yield* parts.filter(Boolean);
  }
}

const key = (proxy) => `${proxy.metadata.namespace}/${proxy.metadata.name}`;

// One list, and its changes until the watch ends.
async function read() {
  const list = await (await ask({})).json();
  proxies = new Map(list.items.map((proxy) => [key(proxy), proxy]));
  say('problem', '');
  view ??= fleet();
  view.update();
  const watch = await ask({ watch: 1, resourceVersion: list.metadata.resourceVersion });
  for await (const line of lines(watch.body)) {
    const { type, object } = JSON.parse(line);
    if (type === 'ERROR') return;
    if (type === 'DELETED') proxies.delete(key(object));
    else if (type !== 'BOOKMARK') proxies.set(key(object), object);
    view.update();
  }
}

async function follow() {
  for (;;) {
    try {
      await read();
    } catch (error) {
      if (error instanceof Refused) return signIn(error.message);
      say('problem', `The server does not answer; trying again. ${error.message}`);
    }
    await new Promise((resume) => setTimeout(resume, PAUSE));
  }
}

function signIn(problem) {
  view = null;
  say('sum', '');
  say('problem', problem);
  const token = h('input', { type: 'password', class: 'wide', required: true, autocomplete: 'off' });
  const namespace = h('input', { type: 'text', value: login.namespace, autocomplete: 'off' });
  const start = (event) => {
    event.preventDefault();
    login = { token: token.value.trim(), namespace: namespace.value.trim() };
    main.replaceChildren(h('p', {}, 'Reading'));
    follow();
  };
  main.replaceChildren(
    h('form', { onsubmit: start }, h('label', {}, 'Token', token), h('label', {}, 'Namespace (empty: all)', namespace), h('button', {}, 'Show the proxies')),
    h('p', { class: 'dim' }, 'A token that may read is enough: ', h('code', {}, 'strait control token create page --role reader'), '. The page keeps it until it is closed.'));
  token.focus();
}

const rejects = (proxy) => proxy.status.rejectedCount > 0;
const COLUMNS = [
  ['Proxy', '', key], ['Cluster', '', (one) => one.spec.cluster], ['Mode', '', (one) => one.spec.mode], ['Version', '', (one) => one.spec.version],
  ['Revision', 'number', (one) => one.status.revision ?? '-'], ['Generation', 'number', (one) => String(one.status.generation)],
  ['State', '', (one) => h('span', { class: one.status.upToDate ? 'good' : 'bad' }, one.status.upToDate ? 'up to date' : 'behind')],
  ['Last change', 'number', (one) => one.status.lastChange ?? '-'], ['Rejected', 'number', (one) => h('span', { class: rejects(one) ? 'bad' : '' }, String(one.status.rejectedCount))],
];
const SHOWN = { all: () => true, behind: (one) => !one.status.upToDate, rejecting: rejects };

// Number of proxies for each value, the most frequent first.
function counted(all, value) {
  const counts = new Map();
  for (const one of all) counts.set(value(one), (counts.get(value(one)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => ({ name, count }));
}

// Rejected objects with the proxies that reject them, by object and reason.
function rejected(all) {
  const found = new Map();
  for (const proxy of all.filter(rejects)) {
    for (const one of proxy.status.rejected ?? []) {
      const id = JSON.stringify([one.object, one.reasons]);
      const entry = found.get(id) ?? { ...one, by: [] };
      entry.by.push(key(proxy));
      found.set(id, entry);
    }
  }
  return [...found.values()].sort((a, b) => b.by.length - a.by.length).slice(0, 200);
}

function fleet() {
  const search = h('input', { type: 'search', class: 'wide', oninput: () => list(true) });
  const only = h('select', { onchange: () => list(true) }, Object.keys(SHOWN).map((name) => h('option', { value: name }, name)));
  const found = h('span', { class: 'dim', role: 'status' });
  const body = h('tbody');
  const head = h('tr', {}, COLUMNS.map(([title, style]) => h('th', { scope: 'col', class: style }, title)));
  const box = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Proxies', onscroll: () => list(false) }, h('table', {}, h('thead', {}, head), body));
  const facts = h('div', { class: 'columns' });
  const problems = h('div');
  main.replaceChildren(facts, problems, h('form', { onsubmit: (event) => event.preventDefault() }, h('label', {}, 'Search', search), h('label', {}, 'Only', only), found), box);

  function list(isNew) {
    if (isNew) box.scrollTop = 0;
    const text = search.value.toLowerCase();
    const all = [...proxies.values()].filter((one) => SHOWN[only.value](one) && `${key(one)} ${one.spec.cluster} ${one.spec.version}`.toLowerCase().includes(text));
    all.sort((a, b) => key(a).localeCompare(key(b)));
    const from = Math.min(Math.max(0, Math.floor(box.scrollTop / ROW_HEIGHT) - 10), Math.max(0, all.length - ROWS));
    const rows = all.slice(from, from + ROWS).map((one) => h('tr', {}, COLUMNS.map(([, style, value]) => h('td', { class: style }, value(one)))));
    found.textContent = `${all.length} of ${proxies.size}`;
    body.replaceChildren(spacer(from, COLUMNS.length), ...rows, spacer(all.length - from - rows.length, COLUMNS.length));
  }

  function sum() {
    const all = [...proxies.values()];
    const behind = all.filter(SHOWN.behind).length;
    say('sum', `${all.length} proxies, ${all.length - behind} up to date, ${behind} behind, ${all.filter(rejects).length} reject objects`);
    const table = (title, value) => simpleTable(title, [[title, '', (row) => row.name], ['Proxies', 'number', (row) => String(row.count)]], counted(all, value).slice(0, 8));
    facts.replaceChildren(table('Revision in effect', (one) => one.status.revision ?? 'none'), table('Version', (one) => one.spec.version), table('Cluster', (one) => one.spec.cluster));
    const bad = rejected(all);
    problems.replaceChildren(...(bad.length === 0 ? [] : [h('h2', {}, 'Rejected resources'), simpleTable('', [
      ['Resource', '', (one) => one.object], ['Errors', 'bad', (one) => one.reasons.join('; ')],
      ['In effect', '', (one) => (one.lastGoodVersionInUse ? 'the last good version' : 'no version')],
      ['Rejected by', '', (one) => (one.by.length > 3 ? `${one.by.length} proxies` : one.by.join(', '))],
    ], bad)]));
  }

  // many reports at once are drawn once
  let timer = 0;
  const draw = () => { timer = 0; sum(); list(false); };
  return { update: () => { timer ||= setTimeout(draw, 200); } };
}

signIn('');
