// What changed and when, on one time axis: health of endpoints, tiers, configuration, certificates.

import { h, s } from './dom.js';

const SPAN = 10 * 60 * 1000;
const GOOD = ['unejected', 'healthy', 'panic_mode_left', 'configuration', 'certificate'];

export const changes = ({ main, stream, history }) => {
  const axis = h('div');
  const list = h('ol', { reversed: true });
  main.append(h('h2', {}, 'The last ten minutes'), axis, h('h2', {}, 'All changes'), list);
  stream({ view: 'none' });

  // renewals are found by the serial numbers of two readings
  const known = new Map();
  async function certificates() {
    const answer = await fetch('/certs').then((response) => response.json()).catch(() => null);
    const isFirst = known.size === 0;
    for (const entry of answer?.certificates ?? []) {
      for (const one of entry.cert_chain ?? []) {
        const before = known.get(entry.source ?? one.path);
        if (!isFirst && before !== one.serial_number) history.all.push({ at: Date.now(), kind: 'certificate', text: `${entry.source ?? one.path} is renewed, valid until ${one.expiration_time}` });
        known.set(entry.source ?? one.path, one.serial_number);
      }
    }
  }
  certificates();
  const timer = setInterval(certificates, 30000);

  let count = -1;
  return {
    update() {
      const now = Date.now();
      const marks = history.all.filter((one) => now - one.at < SPAN).map((one) => s('circle', { class: GOOD.includes(one.kind) ? 'event' : 'event bad', cx: 1180 - ((now - one.at) / SPAN) * 1160, cy: 20, r: 6 }, s('title', {}, `${one.kind}: ${one.text}`)));
      const minutes = [0, 2, 4, 6, 8, 10].map((minute) => s('text', { x: 1180 - (minute / 10) * 1160 - 10, y: 50 }, minute === 0 ? 'now' : `-${minute} min`));
      axis.replaceChildren(s('svg', { viewBox: '0 0 1200 60', role: 'img', 'aria-label': `${marks.length} changes in the last ten minutes; they follow as a list` }, s('line', { class: 'axis', x1: 20, x2: 1180, y1: 20, y2: 20 }), ...marks, ...minutes));
      if (history.all.length === count) return;
      count = history.all.length;
      const newest = [...history.all].sort((a, b) => b.at - a.at);
      list.replaceChildren(...newest.map((one) => h('li', {}, h('time', { datetime: new Date(one.at).toISOString() }, new Date(one.at).toLocaleTimeString()), ` ${one.kind}: ${one.text}`)));
    },
    close: () => clearInterval(timer),
  };
};
