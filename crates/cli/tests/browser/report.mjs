// What each walk begins with: what it is told, how it judges a page, and its report.
//
// The first line of standard input, JSON, says where to go. On standard output a walk asks in lines of JSON for what has to
// happen elsewhere, waits for a line on standard input, and at its end reports.

import { mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline/promises';

import { asSent, onPaper, onScreen, SHAPES } from './checks.mjs';

/** What a walk is told, what drives a browser, and what judges and reports. */
export async function begun() {
  const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const told = JSON.parse((await answers.next()).value);
  const { packages, pictures } = told;
  const require = createRequire(`${packages}/`);
  const { chromium } = require('playwright-core');
  const { AxeBuilder } = require('@axe-core/playwright');
  rmSync(pictures, { recursive: true, force: true });
  mkdirSync(pictures, { recursive: true });

  const report = { problems: [], pages: [], controls: [], painted_ms: 0 };
  const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

  async function ask(what) {
    say(what);
    await answers.next();
  }

  /** Judges the page that is shown, in every shape, and takes its pictures. */
  async function look(page, seen, name, status = 200) {
    const add = (where, problems) => problems.forEach((problem) => report.problems.push({ where, ...problem }));
    const picture = (shape) => page.screenshot({ path: `${pictures}/${name}-${shape}.png`, fullPage: true });
    for (const shape of SHAPES) {
      const where = `${shape.width}-${shape.scheme}`;
      add(`${name}-${where}`, await onScreen(page, shape, AxeBuilder));
      await picture(where);
    }
    add(`${name}-print`, await onPaper(page));
    await picture('print');
    await page.emulateMedia({ media: 'screen', colorScheme: 'light' });
    add(name, await asSent(seen, status));
    report.pages.push(name);
  }

  async function expect(page, words) {
    const said = await page.locator('body').innerText();
    if (!said.includes(words)) report.problems.push({ where: page.url(), kind: 'words', what: `no "${words}"` });
  }

  /** Reports, and ends the walk. */
  function end() {
    say(report);
    process.exit(0);
  }

  return { told, chromium, AxeBuilder, report, ask, look, expect, end };
}
