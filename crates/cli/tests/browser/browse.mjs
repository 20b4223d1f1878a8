// Walks through the pages of `holdall browse` by keyboard, from the printed address to the end of a restore.

import { enter, follow, send, tabTo } from './keyboard.mjs';
import { begun } from './report.mjs';
import { watch } from './watch.mjs';

const { told, chromium, report, look, expect, end } = await begun();
const { site, token, below, target } = told;

/** Loads pages that load themselves anew as if they did not, so that they stay while they are judged. One that another
 * leads to is loaded as it is. */
async function still(page) {
  await page.route('**/restores/*', async (route) => {
    const response = await route.fetch();
    const { refresh, ...headers } = response.headers();
    return route.fulfill({ response, headers });
  });
}

async function toFolder(page) {
  await follow(page, 'nav a[href="/"]');
  await follow(page, `td a[href$="${below}"]`);
}

async function files(page, seen) {
  await toFolder(page);
  await look(page, seen, 'folder');
  await expect(page, 'NOT-IN-THIS-ZIP.txt');
  await follow(page, 'td a[href$="/letter.txt"]');
  await look(page, seen, 'file');
  await expect(page, 'Dear reader');
  await follow(page, 'form[action^="/diff/"] button');
  await look(page, seen, 'compare');
  await expect(page, 'What is not seen differs');
  await toFolder(page);
  await follow(page, 'td a[href$="/picture.png"]');
  await page.frameLocator('iframe').locator('img').waitFor();
  await look(page, seen, 'picture');
  await toFolder(page);
  await follow(page, 'td a[href*="script"]');
  await look(page, seen, 'hostile');
}

async function search(page, seen) {
  await follow(page, 'nav a[href="/search"]');
  await look(page, seen, 'search');
  await send(page, [['#q', '*e*']]);
  await look(page, seen, 'found');
  await expect(page, 'taken for a pattern');
  await send(page, [['#q', 'no such name']]);
  await look(page, seen, 'nothing-found');
}

async function restore(page, seen) {
  await toFolder(page);
  await tabTo(page, `input[name="item"][value$="/large"]`);
  await page.keyboard.press('Space');
  await tabTo(page, 'input[name="where"]');
  await page.keyboard.press('ArrowDown');
  await tabTo(page, 'input[name="folder"]');
  await page.keyboard.type(target);
  await tabTo(page, 'form[action="/restore"] button');
  await still(page);
  await enter(page);
  await page.reload();
  await expect(page, 'Under way');
  await look(page, seen, 'restoring');
  for (let left = 500; left > 0; left -= 1) {
    await page.reload();
    if (!(await page.locator('body').innerText()).includes('Under way')) break;
  }
  await expect(page, 'Done.');
  await look(page, seen, 'restored');
  await follow(page, 'nav a[href="/restores"]');
  await look(page, seen, 'restores');
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const page = await (await browser.newContext()).newPage();
  const seen = watch(page);
  await page.goto(`${site}/?token=${token}`);
  await look(page, seen, 'snapshots');
  await files(page, seen);
  await search(page, seen);
  await restore(page, seen);
  await page.goto(`${site}/wrong`);
  await look(page, seen, 'wrong');
  await page.goto(`${site}/nothing`);
  await look(page, seen, 'problem', 404);
} catch (error) {
  report.problems.push({ where: 'the walk', kind: 'end', what: error.stack });
} finally {
  await browser.close();
}
end();
