// What a browser says of a page while it loads: its console, refusals by the policy, requests that fail, weights.

/** Watches a page from now on; what is wrong gathers in `problems`, as kind and words. */
export function watch(page) {
  const seen = { problems: [], status: 0, asked: '', page: 0, files: new Map() };
  const add = (kind, what) => seen.problems.push({ kind, what });
  page.on('request', (request) => {
    if (request.isNavigationRequest()) seen.asked = request.url();
  });
  page.on('response', (response) => {
    const body = response.body().then((bytes) => bytes.length, () => 0);
    if (response.request().isNavigationRequest()) {
      // A redirection has no body.
      [seen.status, seen.page] = [response.status(), body];
    } else {
      if (response.status() >= 400) add('failed', `${response.status()} for ${response.url()}`);
      seen.files.set(response.url(), body);
    }
  });
  page.on('requestfailed', (request) => {
    const { errorText } = request.failure();
    // What a page that was left still waited for is given up.
    if (errorText !== 'net::ERR_ABORTED') add('failed', `${request.url()}: ${errorText}`);
  });
  page.on('pageerror', (error) => add('console', String(error)));
  page.on('console', (message) => {
    if (!['error', 'warning'].includes(message.type())) return;
    // That a page is a refusal is judged by its status.
    const isOwn = message.location().url === seen.asked;
    if (isOwn && message.text().startsWith('Failed to load resource')) return;
    const isPolicy = message.text().includes('Content Security Policy');
    add(isPolicy ? 'policy' : 'console', message.text());
  });
  return seen;
}

/** Bytes of the page that is shown, with its style sheet and pictures. */
export async function weight(seen) {
  let bytes = await seen.page;
  for (const file of seen.files.values()) bytes += await file;
  return bytes;
}
