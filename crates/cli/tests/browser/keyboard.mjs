// A page without a mouse: where Tab leads, whether that is seen, and forms that Enter sends.

/** Most milliseconds until Enter has led to another page. */
const PATIENCE_MS = 20_000;

/** Goes to the top of the page, as if it was loaded just now. */
async function toTop(page) {
  await page.evaluate(() => {
    window.last = null;
    document.activeElement?.blur();
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute('tabindex');
  });
}

/** Remembers in the page what Tab has to reach, and gives how it is called. */
function stops(page) {
  return page.evaluate(() => {
    const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]');
    // Of choices that belong together one is a stop: arrows lead to the others.
    const isChosen = (one) => one.checked
      || !one.form.querySelector(`[type="radio"][name="${one.name}"]:checked`);
    const isStop = (one) => one.type !== 'hidden' && !one.disabled && one.checkVisibility()
      && (one.type !== 'radio' || isChosen(one));
    window.stops = [...all].filter(isStop);
    return window.stops.map((one) => one.outerHTML.slice(0, 120));
  });
}

/** What has the focus: its place among the stops, and whether that is seen. */
function focused(page) {
  return page.evaluate(() => {
    const one = document.activeElement;
    const isSame = window.last === one;
    window.last = one;
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    return {
      at: window.stops.indexOf(one),
      isSame,
      isNothing: one === document.body || one === document.documentElement,
      isOutlined: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2
        && !/, 0\)$/.test(outlineColor),
      isInView: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
      // A browser lets whoever has no mouse move what is wider than its place.
      scrolls: one.scrollWidth > one.clientWidth,
      what: one.outerHTML.slice(0, 120),
    };
  });
}

/** What is wrong for who has a keyboard alone. */
export async function keyboard(page) {
  const problems = [];
  const wanted = await stops(page);
  const reached = [];
  let wasNothing = false;
  await toTop(page);
  for (let left = 2 * wanted.length + 10; ; left -= 1) {
    await page.keyboard.press('Tab');
    const now = await focused(page);
    if (now.at >= 0 && now.at === reached[0] && reached.length > 1) break;
    if (now.isNothing) {
      // On its way into a frame, or out of it, the focus is nowhere for a moment.
      if (wasNothing || reached.length >= wanted.length) break;
      wasNothing = true;
      continue;
    }
    wasNothing = false;
    if (now.isSame || left === 0) {
      problems.push({ kind: 'trap', what: now.what });
      break;
    }
    if (!now.isOutlined || !now.isInView) problems.push({ kind: 'focus', what: now.what });
    if (now.at >= 0) reached.push(now.at);
    else if (!now.scrolls) problems.push({ kind: 'order', what: `no stop: ${now.what}` });
  }
  const isBack = (at, index) => index > 0 && at < reached[index - 1];
  reached.filter(isBack).forEach((at) => problems.push({ kind: 'order', what: wanted[at] }));
  const isMissing = (_, at) => !reached.includes(at);
  wanted.filter(isMissing).forEach((what) => problems.push({ kind: 'reach', what }));
  await toTop(page);
  return problems;
}

/** Goes on by Tab to what `selector` names. */
export async function tabTo(page, selector) {
  await page.locator(selector).first().waitFor({ state: 'visible', timeout: PATIENCE_MS });
  await toTop(page);
  for (let left = 300; left > 0; left -= 1) {
    await page.keyboard.press('Tab');
    const isThere = (wanted) => document.activeElement.matches(wanted);
    if (await page.evaluate(isThere, selector)) return;
  }
  throw new Error(`Tab does not lead to ${selector} on ${page.url()}`);
}

/** Presses Enter where the focus is, and waits for the page that comes. */
export async function enter(page, patience = PATIENCE_MS) {
  const comes = page.waitForNavigation({ waitUntil: 'load', timeout: patience });
  await Promise.all([comes, page.keyboard.press('Enter')]);
}

/** Follows a link, or presses a button. */
export async function follow(page, selector) {
  await tabTo(page, selector);
  await enter(page);
}

/** Fills fields, pairs of a selector and words, and sends their form from the last. */
export async function send(page, fields, patience = PATIENCE_MS) {
  for (const [selector, words] of fields) {
    await tabTo(page, selector);
    await page.keyboard.type(words);
  }
  await enter(page, patience);
}
