// Pages that were made wrong, each in one way: what finds nothing there would prove nothing elsewhere.

import { asSent, onPaper, onScreen, SHAPES } from './checks.mjs';
import { send } from './keyboard.mjs';
import { watch } from './watch.mjs';

/** A script that has Tab do something else at a link of the page's main part. */
const onTab = (what) => `<script>addEventListener('keydown', (event) => {
  if (event.key !== 'Tab' || !document.activeElement.matches('main a')) return;
  ${what}
})</script>`;

/** What is added at a page's end, by the kind of problem that it is. Those with `strict` stay under the page's policy. */
const ADDED = {
  axe: { html: '<input type="text">' },
  console: { html: '<script>console.error("wrong")</script>' },
  failed: { html: '<img alt="" src="/nothing.png">' },
  focus: { html: '<style>*:focus-visible { outline: none !important }</style>' },
  heavy: { html: `<!-- ${'x'.repeat(100_000)} -->` },
  order: { html: onTab("document.querySelector('nav a').focus(); event.preventDefault();") },
  policy: { html: '<p style="color: red">Styled</p>', strict: true },
  print: { html: '<style>@media print { main { display: none } }</style>' },
  reach: { html: '<a href="/jobs" tabindex="-1">Never</a>' },
  sideways: { html: '<svg width="2000" height="1"></svg>' },
  trap: { html: onTab('event.preventDefault();') },
};

/** Has each page changed on its way. */
async function altered(page, change, strict = false) {
  await page.route('**/*', async (route) => {
    if (!route.request().isNavigationRequest()) return route.continue();
    const response = await route.fetch();
    const headers = response.headers();
    if (!strict) delete headers['content-security-policy'];
    return route.fulfill({ response, headers, body: change(await response.text()) });
  });
}

async function withPage(context, work) {
  const page = await context.newPage();
  const seen = watch(page);
  try {
    return await work(page, seen);
  } finally {
    await page.close();
  }
}

/** The kinds of problems that were found where they had been made. */
export async function found(context, site, AxeBuilder) {
  const kinds = [];
  const look = (kind, path, change, strict) => withPage(context, async (page, seen) => {
    if (change) await altered(page, change, strict);
    await page.goto(`${site}${path}`);
    const problems = [
      ...await onScreen(page, SHAPES[0], AxeBuilder),
      ...await onPaper(page),
      ...await asSent(seen, 200),
    ];
    if (problems.some((problem) => problem.kind === kind)) kinds.push(kind);
  });
  for (const [kind, { html, strict }] of Object.entries(ADDED)) {
    await look(kind, '/', (page) => page.replace('</body>', `${html}</body>`), strict);
  }
  await look('broken', '/nothing');
  await withPage(context, async (page) => {
    await altered(page, (html) => html.replaceAll('<button', '<button type="button"'));
    await page.goto(`${site}/settings`);
    const sent = send(page, [['#machine', 'x'], ['#password', 'x']], 1000);
    await sent.catch(() => kinds.push('enter'));
  });
  return kinds;
}
