// Elements from text only: nothing that the proxy sends is ever HTML.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export const rate = (value) => (value === 0 ? '0' : value < 100 ? value.toFixed(1) : value.toFixed(0));
export const percent = (share) => (share === null ? '-' : share === 0 ? '0%' : `${share.toFixed(1)}%`);
export const failed = (row) => (row.failed === null || row.rate === 0 ? null : (row.failed / row.rate) * 100);
export const ms = (time) =>
  time === null || time === undefined ? '-' : time < 10 ? `${time.toFixed(1)}ms` : time < 10000 ? `${time.toFixed(0)}ms` : `${(time / 1000).toFixed(1)}s`;

// A table with a heading for each column: [title, class, value of a row].
export function simpleTable(caption, columns, rows) {
  const head = columns.map(([title, style]) => h('th', { scope: 'col', class: style }, title));
  const body = rows.map((row) =>
    h('tr', {}, columns.map(([, style, value]) => {
      const shown = value(row);
      return h('td', { class: style }, shown === null || shown === undefined ? '-' : shown);
    })));
  return h('table', {}, h('caption', { class: 'dim' }, caption), h('thead', {}, h('tr', {}, head)), h('tbody', {}, body));
}

// Height of a row, in pixels.
export const ROW_HEIGHT = 28;

// A row in place of rows that are not on the screen.
export function spacer(rows, columns) {
  const row = h('tr', { class: 'spacer', 'aria-hidden': 'true' }, h('td', { colspan: columns }));
  row.firstChild.style.height = `${rows * ROW_HEIGHT}px`;
  return row;
}
