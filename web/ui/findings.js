// Rejected resources, and all findings about the newest configuration, as `strait check` prints them.

import { h, located, simpleTable } from './dom.js';

const CHECK_EVERY = 10000;

export const findings = ({ main, stream }) => {
  const rejected = h('div', { 'aria-live': 'polite' });
  const found = h('div', { 'aria-live': 'polite' });
  main.append(h('h2', {}, 'Rejected resources'), rejected, h('h2', {}, 'Findings'), found);
  stream({ view: 'none' });

  const none = (text) => h('p', {}, text);
  const text = (one) => h('span', { class: one.severity === 'error' ? 'bad' : '' }, one.message);
  let shown = null;
  let shownFindings = null;

  async function read() {
    const answer = await fetch('/findings?format=json').then((response) => response.text()).catch(() => null);
    if (answer === null || answer === shownFindings) return;
    shownFindings = answer;
    const all = JSON.parse(answer);
    found.replaceChildren(all.length === 0 ? none('None.') : simpleTable(`${all.length} findings`, [
      ['Severity', '', (one) => one.severity], ['Code', '', (one) => one.code], ['Resource', '', (one) => one.object],
      ['Location', '', (one) => located(one.location)], ['Field', '', (one) => one.field], ['Finding', 'text', text], ['Fix', 'text', (one) => one.help],
    ], all));
  }
  read();
  const timer = setInterval(read, CHECK_EVERY);

  return {
    update(message) {
      const state = JSON.stringify([message.generation, message.rejected]);
      if (state === shown) return;
      shown = state;
      read();
      rejected.replaceChildren(message.rejected.length === 0 ? none('None: the newest version of every resource is in effect.') : simpleTable('', [
        ['Resource', '', (one) => one.object], ['Location', '', (one) => located(one.location)], ['Errors', 'bad text', (one) => one.errors.join('; ')],
        ['In effect', '', (one) => (one.last_good_version_in_use ? 'the last good version' : 'no version')],
      ], message.rejected));
    },
    close: () => clearInterval(timer),
  };
};
