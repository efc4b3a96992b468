// A table of rates, of which only the rows on the screen are asked for.

import { ROW_HEIGHT, failed, h, ms, percent, rate, spacer } from './dom.js';

const COLUMNS = [['name', 'Name', ''], ['rate', 'req/s', 'number'], ['failed', 'Failed', 'number'], ['p50', 'p50', 'number'], ['p99', 'p99', 'number'], ['active', 'Active', 'number']];

export const table = (kind) => ({ main, stream }) => {
  const asked = { view: kind, sort: 'rate', reverse: '', search: '', from: 0, count: 60 };
  const head = h('tr');
  const body = h('tbody');
  const box = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table' }, h('table', {}, h('thead', {}, head), body));
  const search = h('input', { type: 'search', class: 'wide', oninput: () => { asked.search = search.value; asked.from = 0; box.scrollTop = 0; ask(); } });
  const found = h('span', { class: 'dim', role: 'status' });
  main.append(h('form', { onsubmit: (event) => event.preventDefault() }, h('label', {}, 'Search', search), found), box);

  let timer = 0;
  // typing and scrolling ask once they pause
  const ask = () => { clearTimeout(timer); timer = setTimeout(() => stream(asked), 100); };
  box.addEventListener('scroll', () => {
    const from = Math.max(0, Math.floor(box.scrollTop / ROW_HEIGHT) - 20);
    if (Math.abs(from - asked.from) > 10) { asked.from = from; ask(); }
  });

  const sortBy = (column) => {
    asked.reverse = asked.sort === column && !asked.reverse ? '1' : '';
    asked.sort = column;
    drawHead();
    stream(asked);
  };
  const drawHead = () => {
    const focused = [...head.children].indexOf(document.activeElement?.parentElement);
    head.replaceChildren(
      ...COLUMNS.map(([column, title, style]) => {
        const isSorted = asked.sort === column;
        const isRising = Boolean(asked.reverse) !== (column === 'name');
        const order = isSorted ? (isRising ? 'ascending' : 'descending') : 'none';
        return h('th', { scope: 'col', class: style, 'aria-sort': order }, h('button', { onclick: () => sortBy(column) }, title + (isSorted ? (isRising ? ' ▲' : ' ▼') : '')));
      }),
      h('th', { scope: 'col' }, 'About'));
    head.children[focused]?.firstChild.focus?.();
  };

  const line = (row) => {
    const share = failed(row);
    const name = kind === 'destination' ? h('a', { href: `#/service/${encodeURIComponent(row.name.replace(' (inbound)', ''))}` }, row.name) : row.name;
    return h('tr', {},
      h('td', {}, name), h('td', { class: 'number' }, rate(row.rate)),
      h('td', { class: `number ${share >= 1 ? 'bad' : ''}` }, percent(share)), h('td', { class: 'number' }, ms(row.p50_ms)),
      h('td', { class: 'number' }, ms(row.p99_ms)), h('td', { class: 'number' }, row.active === null ? '-' : String(row.active)),
      h('td', { class: row.unavailable ? 'bad' : 'dim' }, row.unavailable ? `${row.about}: ${row.unavailable}` : row.about));
  };

  drawHead();
  stream(asked);
  return {
    update(message) {
      if (!message.rows) return;
      if (message.interval_seconds === 0) { found.textContent = 'Measuring'; return; }
      found.textContent = `${message.total} rows`;
      const after = Math.max(0, message.total - message.from - message.rows.length);
      body.replaceChildren(spacer(message.from, COLUMNS.length + 1), ...message.rows.map(line), spacer(after, COLUMNS.length + 1));
    },
    close: () => clearTimeout(timer),
  };
};
