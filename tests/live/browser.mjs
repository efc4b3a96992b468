// A page in Chromium, and a report of steps: what the browser complains about, or asks of another server, is a failure.

import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

// Opens a page of this server; a refusal with the status that steps expect is no complaint.
export async function start(executablePath, server, expected) {
  const browser = await chromium.launch({ executablePath, args: ARGS });
  const page = await browser.newPage({ viewport: { width: 1300, height: 800 }, ignoreHTTPSErrors: true });
  const problems = [];
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type()) && !message.text().includes(expected)) problems.push(message.text()); });
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('request', (request) => { if (!request.url().startsWith(server) && !request.url().startsWith('data:')) problems.push(`asks ${request.url()}`); });
  let passed = 0;
  return {
    page,
    step: async (name, run) => { await run(); passed += 1; console.log(`ok ${name}`); },
    text: (selector) => page.locator(selector).innerText(),
    end: async () => {
      assert.deepEqual(problems, []);
      console.log(`${passed} passed, 0 failed`);
      await browser.close();
    },
  };
}
