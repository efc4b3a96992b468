// Resources whose newest version is rejected.

import { h, simpleTable } from './dom.js';

export const findings = ({ main, stream }) => {
  const box = h('div', { 'aria-live': 'polite' });
  main.append(h('h2', {}, 'Rejected resources'), box);
  stream({ view: 'none' });
  let shown = null;
  return {
    update(message) {
      const text = JSON.stringify(message.rejected);
      if (text === shown) return;
      shown = text;
      box.replaceChildren(message.rejected.length === 0 ? h('p', {}, 'None: the newest version of every resource is in effect.') : simpleTable('', [
        ['Resource', '', (one) => one.object], ['Location', '', (one) => one.location], ['Errors', 'bad', (one) => one.errors.join('; ')],
        ['In effect', '', (one) => (one.last_good_version_in_use ? 'the last good version' : 'no version')],
      ], message.rejected));
    },
  };
};
