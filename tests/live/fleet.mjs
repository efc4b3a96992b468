// Steps of a person at the page of a config server; see `run`.

import assert from 'node:assert/strict';
import { start } from './browser.mjs';

const [executablePath, server, reader, proxy, out] = process.argv.slice(2);
const { page, step, text, end } = await start(executablePath, server, '401');

// Reports as a proxy does, with its token.
async function report(number, status) {
  const path = `/apis/strait.io/v1alpha1/namespaces/default/proxies/edge-${number}`;
  const data = {
    apiVersion: 'strait.io/v1alpha1', kind: 'Proxy', metadata: { name: `edge-${number}`, namespace: 'default' },
    spec: { cluster: number % 2 ? 'eu/a/prod/c1' : 'us/a/prod/c2', mode: 'gateway', version: number % 3 ? '0.1.0' : '0.2.0' },
    status: { revision: '1', generation: 3, tookSeconds: 0, rejectedCount: 0, ...status },
  };
  const answer = await page.request.put(server + path, { data, headers: { authorization: `Bearer ${proxy}` } });
  assert.ok(answer.ok(), `${answer.status()} ${await answer.text()}`);
}

async function signIn(token) {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Show the proxies' }).click();
}

await step('a wrong token is refused, and asked for again', async () => {
  await page.goto(`${server}/ui`);
  await signIn('wrong');
  await page.getByText('Unauthorized').waitFor();
});

await step('proxies appear with what they have in effect', async () => {
  for (let number = 0; number < 300; number += 1) await report(number, {});
  await signIn(reader);
  await page.waitForFunction(() => document.getElementById('sum').textContent.startsWith('300 proxies'));
  assert.match(await text('.columns'), /0\.1\.0\s+200/);
  // only the rows on the screen are elements
  assert.ok((await page.locator('.scroll tbody tr').count()) < 70);
});

await step('a rejected resource is seen within two seconds, with its reason', async () => {
  const rejected = [{ object: 'VirtualService/shop/cart', lastGoodVersionInUse: true, reasons: ['cart.yaml:7:5: unknown field "rout"'] }];
  await report(7, { rejectedCount: 1, rejected });
  await report(8, { rejectedCount: 1, rejected });
  await page.getByText('unknown field').waitFor({ timeout: 2000 });
  assert.match(await text('main'), /default\/edge-7, default\/edge-8/);
  await page.getByLabel('Only').selectOption('rejecting');
  await page.getByText('2 of 300').waitFor();
  await page.screenshot({ path: `${out}/fleet.png` });
});

await step('search and scrolling find every proxy', async () => {
  await page.getByLabel('Only').selectOption('all');
  await page.locator('.scroll').evaluate((box) => { box.scrollTop = box.scrollHeight; });
  await page.getByText('default/edge-99', { exact: true }).waitFor();
  await page.getByLabel('Search').fill('edge-123');
  await page.getByText('1 of 300').waitFor();
});

await step('the token is nowhere but in the memory of the page', async () => {
  const kept = await page.evaluate(() => [document.cookie, ...Object.values(localStorage), ...Object.values(sessionStorage), location.href].join());
  assert.ok(!kept.includes(reader));
  await page.reload();
  await page.getByLabel('Token').waitFor();
});

await end();
