// Explain as a form: what the proxy would do with a request, by the code that routes traffic. Nothing is sent.

import { h } from './dom.js';

export const explain = ({ main, stream }) => {
  const method = h('input', { value: 'GET', size: 8, required: true });
  const url = h('input', { type: 'text', class: 'wide', placeholder: 'http://shop.example/cart', required: true });
  const headers = h('textarea', { rows: 2, cols: 40, placeholder: 'x-user: u7' });
  const all = h('input', { type: 'checkbox' });
  const answer = h('pre', { tabindex: 0, role: 'region', 'aria-label': 'Explanation', 'aria-live': 'polite' });
  main.append(
    h('form', { onsubmit: ask }, h('label', {}, 'Method', method), h('label', {}, 'URL', url), h('label', {}, 'Headers, one per line', headers),
      h('label', {}, 'Every rule', all), h('button', {}, 'Explain')),
    answer);
  stream({ view: 'none' });

  // locations of resources, as FILE:LINE in parentheses, are marked and copied by a click
  function located(text) {
    return text.split(/(\([^()\s]+:\d+\))/).map((part) => (/^\(.+:\d+\)$/.test(part)
      ? h('button', { type: 'button', title: 'Copy the location', onclick: () => navigator.clipboard?.writeText(part.slice(1, -1)) }, part.slice(1, -1))
      : part));
  }

  async function ask(event) {
    event.preventDefault();
    const query = new URLSearchParams({ url: url.value, method: method.value });
    headers.value.split('\n').filter((line) => line.trim()).forEach((line) => query.append('header', line));
    if (all.checked) query.append('all', '');
    const response = await fetch(`/explain?${query}`).catch((error) => ({ text: () => String(error) }));
    answer.replaceChildren(...located(await response.text()));
  }
  return {};
};
