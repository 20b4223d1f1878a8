// What has to hold for every page: at a telephone's width and a desk's, light, dark and on paper.

import { keyboard } from './keyboard.mjs';
import { weight } from './watch.mjs';

/** Widths in pixels, and colours. */
export const SHAPES = [360, 1280].flatMap((width) => ['light', 'dark'].map((scheme) => ({ width, scheme })));
/** A page weighs less, with all that it loads. */
const MOST_BYTES = 100_000;
/** Pixels of A4 between its margins. */
const PAPER = 700;

async function take(page, { width, scheme }, media = 'screen') {
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme, media });
}

function sideways(page) {
  return page.evaluate(() => {
    const { scrollWidth } = document.documentElement;
    return scrollWidth > innerWidth ? [{ kind: 'sideways', what: `${scrollWidth} > ${innerWidth}` }] : [];
  });
}

async function accessible(page, AxeBuilder) {
  const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
  const grave = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  return grave.flatMap(({ id, nodes }) => nodes.map((node) => (
    { kind: 'axe', what: `${id} at ${node.target}: ${node.failureSummary}` })));
}

/** What is wrong on a screen of that shape. */
export async function onScreen(page, shape, AxeBuilder) {
  await take(page, shape);
  return [
    ...await sideways(page),
    ...await accessible(page, AxeBuilder),
    ...await keyboard(page),
  ];
}

/** What is wrong on paper, which is white, however dark the screen is. */
export async function onPaper(page) {
  await take(page, { width: PAPER, scheme: 'dark' }, 'print');
  return [...await sideways(page), ...await page.evaluate(() => {
    const wrong = (what) => ({ kind: 'print', what });
    const rgb = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
    const light = (colour) => rgb(colour).reduce((sum, part) => sum + part, 0) / 765;
    const ground = getComputedStyle(document.documentElement).backgroundColor;
    const problems = light(ground) < 0.99 ? [wrong(`the ground is ${ground}`)] : [];
    const drawn = [...document.querySelectorAll('h1, h2, p, td, li, a, .light, main svg')];
    const hidden = (one) => one.closest('form, header, nav, details') === null
      && (!one.checkVisibility() || one.getBoundingClientRect().height === 0);
    const pale = (one) => one.checkVisibility() && light(getComputedStyle(one).color) > 0.6;
    const cut = [...document.querySelectorAll('main *')].filter((one) => one.scrollWidth > one.clientWidth
      && getComputedStyle(one).overflowX !== 'visible');
    cut.forEach((one) => problems.push(wrong(`cut off: ${one.outerHTML.slice(0, 120)}`)));
    drawn.filter(hidden).forEach((one) => problems.push(wrong(`not drawn: ${one.outerHTML.slice(0, 120)}`)));
    drawn.filter(pale).forEach((one) => problems.push(wrong(`pale: ${one.outerHTML.slice(0, 120)}`)));
    return problems;
  })];
}

/** What is wrong with a page, whatever shape it has: what came, and what the browser said since the last time. */
export async function asSent(seen, status) {
  const problems = seen.problems.splice(0);
  if (seen.status !== status) problems.push({ kind: 'broken', what: `${seen.status}, not ${status}` });
  const bytes = await weight(seen);
  if (bytes > MOST_BYTES) problems.push({ kind: 'heavy', what: `${bytes} bytes` });
  return problems;
}
