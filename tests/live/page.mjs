// Steps of a person at the live page; see `run`.

import assert from 'node:assert/strict';
import { start } from './browser.mjs';

const [executablePath, admin, control, out] = process.argv.slice(2);
const { page, step, text, end } = await start(executablePath, admin, '400 (Bad Request)');
let bytes = 0;
page.on('response', async (response) => { if (response.url().includes('/ui/')) bytes += (await response.body()).length; });
const open = (view) => page.goto(`${admin}/#/${view}`);

await step('the page shows rates', async () => {
  await page.goto(`${admin}/`);
  await page.waitForFunction(() => /generation \d+: [1-9]/.test(document.getElementById('sum').textContent));
  const policy = (await page.request.get(`${admin}/`, { headers: { accept: 'text/html' } })).headers()['content-security-policy'];
  assert.match(policy, /default-src 'none'/);
});

await step('topology leads from the listener to endpoints', async () => {
  await page.locator('svg .node').nth(4).waitFor();
  const names = await page.locator('svg text').allTextContents();
  for (const kind of ['listeners', 'hosts', 'services', 'clusters', 'endpoints']) assert.ok(names.includes(kind), names.join());
  await page.getByText('As a table').click();
  assert.ok((await page.locator('details table tbody tr').count()) >= 5);
  await page.screenshot({ path: `${out}/topology.png` });
});

await step('every view draws without an error', async () => {
  for (const link of await page.locator('nav a').all()) {
    await link.click();
    await page.locator(`nav a[href="${await link.getAttribute('href')}"][aria-current=page]`).waitFor();
    assert.ok((await text('main')).length > 0);
  }
});

const clusters = async () => {
  const rows = await page.locator('tbody tr:not(.spacer)').evaluateAll((rows) => rows.map((row) => [row.cells[0].textContent, Number(row.cells[1].textContent)]));
  return new Map(rows.map(([name, rate]) => [name.split('/').pop(), rate]));
};

await step('a cluster that stops is seen within two seconds of its shift', async () => {
  await open('clusters');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr:not(.spacer)').length >= 3);
  assert.ok((await clusters()).get('c2') > 0, [...(await clusters())].join());
  await page.request.post(`${control}/demo/clusters/c2/stop`);
  const stopped = Date.now();
  while ((await clusters()).get('c2') > 0) {
    assert.ok(Date.now() - stopped < 10000, 'c2 still has requests');
    await page.waitForTimeout(50);
  }
  const took = Date.now() - stopped;
  console.log(`   after ${took} ms`);
  assert.ok(took < 4000, `${took} ms: ejection and a second of the stream`);
  await open('changes');
  await page.locator('ol li', { hasText: /ejected|unhealthy|priority/ }).first().waitFor();
  await page.screenshot({ path: `${out}/changes.png` });
  await page.request.post(`${control}/demo/clusters/c2/start`);
});

await step('a request is explained', async () => {
  await open('explain');
  const [listener] = await (await page.request.get(`${admin}/listeners?format=json`)).json();
  await page.getByLabel('URL').fill(`http://${listener.address}/`);
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.waitForFunction(() => document.querySelector('pre').textContent.includes('100%') || document.querySelector('pre').textContent.includes('destination'));
  assert.match(await text('pre'), /listener/);
  await page.screenshot({ path: `${out}/explain.png` });
});

await step('tap shows requests as they end, and names a wrong filter', async () => {
  await open('tap');
  await page.getByLabel('Filters').fill('hots=a');
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByText('unknown filter').waitFor();
  await page.getByLabel('Filters').fill('status=200');
  await page.getByRole('button', { name: 'Start' }).click();
  await page.locator('tbody tr').nth(3).waitFor();
  assert.match(await text('tbody tr:first-child'), /200/);
  await page.screenshot({ path: `${out}/tap.png` });
  await page.getByRole('button', { name: 'Stop' }).click();
});

await step('a service has its shares', async () => {
  await open('destinations');
  await page.locator('tbody a').first().click();
  await page.getByText('Share wanted').first().waitFor();
  await page.screenshot({ path: `${out}/service.png` });
});

await step('findings are those of the proxy', async () => {
  const all = await (await page.request.get(`${admin}/findings?format=json`)).json();
  await open('findings');
  if (all.length === 0) await page.getByText('None.', { exact: true }).waitFor();
  else assert.equal(await page.locator('main table').last().locator('tbody tr').count(), all.length);
});

await step('keys alone reach the content and the views', async () => {
  await page.goto('about:blank');
  await page.goto(`${admin}/#/hosts`);
  await page.locator('nav a[aria-current=page]').waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  for (let times = 0; times < 3; times += 1) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash === '#/rules');
  const order = page.locator('th').nth(1);
  await page.locator('th button').nth(1).focus();
  await page.keyboard.press('Enter');
  assert.equal(await order.getAttribute('aria-sort'), 'ascending');
  assert.match(await page.evaluate(() => document.activeElement.textContent), /req/);
});

await step('dark mode changes the colors', async () => {
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await back();
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.notEqual(await back(), light);
  await page.screenshot({ path: `${out}/dark.png` });
});

assert.ok(bytes < 150 * 1024, `${bytes} bytes`);
await end();
