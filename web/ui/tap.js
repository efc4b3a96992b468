// Finished requests as they end.

import { h, ms } from './dom.js';

const ROWS_MAX = 200;

export const tap = ({ main, stream }) => {
  const filter = h('input', { type: 'text', class: 'wide', placeholder: 'status=5xx host=shop.example' });
  const button = h('button', {}, 'Start');
  const note = h('p', { role: 'status', class: 'dim' });
  const body = h('tbody');
  const titles = ['Time', 'Status', 'Time taken', 'Request', 'Rule', 'Destination', 'Cluster', 'Endpoint', 'Attempts'];
  main.append(
    h('form', { onsubmit: toggle }, h('label', {}, 'Filters', filter), button), note,
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Requests' },
      h('table', {}, h('thead', {}, h('tr', {}, titles.map((title) => h('th', { scope: 'col' }, title)))), body)));
  stream({ view: 'none' });
  let source = null;

  function stop(text) {
    source?.close();
    source = null;
    button.textContent = 'Start';
    note.textContent = text;
  }

  async function toggle(event) {
    event.preventDefault();
    if (source) return stop('Stopped.');
    const words = filter.value.split(/\s+/).filter(Boolean);
    const query = new URLSearchParams(words.map((word) => { const at = word.indexOf('='); return at < 0 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)]; }));
    query.append('rate', '20/s');
    source = new EventSource(`/tap?${query}`);
    button.textContent = 'Stop';
    note.textContent = 'Waiting for requests.';
    source.addEventListener('tap', (told) => {
      const { over_rate: over, dropped } = JSON.parse(told.data).tap;
      if (over + dropped > 0) note.textContent = `${over} more beyond 20 per second, ${dropped} dropped.`;
    });
    source.addEventListener('request', (told) => {
      body.prepend(line(JSON.parse(told.data)));
      while (body.rows.length > ROWS_MAX) body.lastChild.remove();
    });
    source.onerror = async () => {
      // the stream does not say why it was refused
      stop('The tap has ended.');
      const asked = await fetch(`/tap?${query}&max=0`).catch(() => null);
      if (asked && !asked.ok) note.textContent = (await asked.text()).split('\n')[0];
    };
  }

  function attempt(one) {
    const reason = one.reason ? `${one.failover ? 'failover' : 'retry'} (${one.reason}) ` : '';
    return `${reason}${one.endpoint} ${one.error ?? one.status ?? 'no result'} ${ms(one.total_ms)}`;
  }

  function line(request) {
    const isBad = request.status === 0 || request.status >= 500;
    const rule = request.rule ? `${request.rule.name ? `${request.rule.name} of ` : ''}${request.rule.object} (${request.rule.file}:${request.rule.line})` : 'no rule';
    const destination = request.destination ? `${request.destination.host} ${request.destination.subset ?? ''}` : request.details;
    const flags = request.flags === '-' ? '' : ` ${request.flags}`;
    const cells = [
      request.time.slice(11, 23), h('span', { class: isBad ? 'bad' : '' }, `${request.status || '---'}${flags}`), ms(request.timing.last_byte_ms),
      `${request.method} ${request.scheme}://${request.host}${request.path}`, rule, destination, request.cluster ?? '-', request.endpoint ?? '-',
      request.attempts.map(attempt).join('; ') || '-',
    ];
    return h('tr', {}, cells.map((cell) => h('td', {}, cell)));
  }
  return { close: () => source?.close() };
};
