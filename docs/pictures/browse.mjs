// Takes the picture of `holdall browse`: its printed address, and the folder for the picture.

import { createRequire } from 'node:module';

const [, , address, out] = process.argv;
const { chromium } = createRequire(`${out}/../../target/tools/browser/`)('playwright-core');
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 900, height: 600 } });
await page.goto(address);
await page.locator('td a[href$="/srv/ada"]').first().click();
await page.screenshot({ path: `${out}/browse.png`, fullPage: true });
await browser.close();
