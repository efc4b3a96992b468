// Listeners, hosts, services, clusters and endpoints with the rates between them, as a drawing and as a table.

import { h, percent, rate, s, simpleTable } from './dom.js';

const KINDS = ['listener', 'host', 'service', 'cluster', 'endpoint'];
const WIDTH = 1200;
const STEP = 30;
const BOX = 190;

export const topology = ({ main, stream }) => {
  const asked = { view: 'topology', search: '' };
  const search = h('input', { type: 'search', class: 'wide', oninput: () => { clearTimeout(timer); timer = setTimeout(() => { asked.search = search.value; stream(asked); }, 150); } });
  let timer = 0;
  const note = h('span', { class: 'dim', role: 'status' });
  const drawing = h('div');
  const list = h('div');
  main.append(
    h('form', { onsubmit: (event) => event.preventDefault() }, h('label', {}, 'Search', search), note),
    drawing, h('details', {}, h('summary', {}, 'As a table'), list));
  stream(asked);

  const short = (name) => (name.length > 27 ? `${name.slice(0, 13)}…${name.slice(-13)}` : name);
  const isFailing = (link) => link.rate > 0 && link.failed / link.rate >= 0.01;

  function draw(links) {
    const columns = KINDS.map((kind) => {
      const names = links.flatMap((link) => [link.from, link.to]).filter((node) => node[0] === kind).map((node) => node[1]);
      return [...new Set(names)];
    });
    const place = (node) => {
      const column = KINDS.indexOf(node[0]);
      return [column * ((WIDTH - BOX) / (KINDS.length - 1)), columns[column].indexOf(node[1]) * STEP + 30];
    };
    const height = Math.max(...columns.map((names) => names.length), 1) * STEP + 40;
    const edges = links.map((link) => {
      const [x1, y1] = place(link.from);
      const [x2, y2] = place(link.to);
      const [from, to, middle] = [x1 + BOX, x2, (x1 + BOX + x2) / 2];
      const width = link.rate > 0 ? 1 + Math.min(7, Math.log10(1 + link.rate) * 2.5) : 0.5;
      return s('path', { class: isFailing(link) ? 'edge failing' : 'edge', 'stroke-width': width, d: `M${from},${y1 + 11} C${middle},${y1 + 11} ${middle},${y2 + 11} ${to},${y2 + 11}` },
        s('title', {}, `${link.from[1]} to ${link.to[1]}: ${rate(link.rate)} req/s, ${percent(link.rate > 0 ? (link.failed / link.rate) * 100 : null)} failed`));
    });
    const titles = KINDS.map((kind, column) => s('text', { x: column * ((WIDTH - BOX) / (KINDS.length - 1)), y: 14, 'font-weight': 600 }, `${kind}s`));
    const nodes = columns.flatMap((names, column) => names.map((name) => {
      const [x, y] = place([KINDS[column], name]);
      const parts = [s('rect', { class: 'node', x, y, width: BOX, height: 22, rx: 4 }), s('text', { x: x + 6, y: y + 15 }, short(name)), s('title', {}, name)];
      return KINDS[column] === 'service' ? s('a', { href: `#/service/${encodeURIComponent(name)}` }, ...parts) : s('g', {}, ...parts);
    }));
    return s('svg', { viewBox: `0 0 ${WIDTH} ${height}`, role: 'group', 'aria-label': 'Topology; the same follows as a table' }, ...edges, ...titles, ...nodes);
  }

  return {
    update(message) {
      if (!message.links) return;
      if (message.interval_seconds === 0) { note.textContent = 'Measuring'; return; }
      note.textContent = message.links.length ? (message.is_cut ? 'The busiest rules; search for others.' : '') : 'No requests yet.';
      // a focused link stays: it is redrawn only if what is shown has changed
      const focused = document.activeElement?.closest?.('svg a')?.getAttribute('href');
      drawing.replaceChildren(draw(message.links));
      if (focused) drawing.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
      list.replaceChildren(simpleTable('Requests per second between two parts', [
        ['From', '', (link) => link.from[1]], ['To', '', (link) => link.to[1]],
        ['req/s', 'number', (link) => rate(link.rate)],
        ['Failed', 'number', (link) => percent(link.rate > 0 ? (link.failed / link.rate) * 100 : null)],
      ], [...message.links].sort((a, b) => KINDS.indexOf(a.from[0]) - KINDS.indexOf(b.from[0]))));
    },
    close: () => clearTimeout(timer),
  };
};
