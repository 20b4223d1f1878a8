// Keeps a page of what runs as it is on the server, until nothing runs any more.
"use strict";
(() => {
  const main = document.querySelector("main");
  const reached = () => [...main.querySelectorAll("a, button, input, select, summary")];
  const changes = new EventSource("/changes");
  changes.onmessage = async () => {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    // What is there for browsers without scripts would have this one load the page again.
    for (const element of page.querySelectorAll("noscript")) element.remove();
    const at = reached().indexOf(document.activeElement);
    main.replaceChildren(...page.querySelector("main").childNodes);
    reached()[at]?.focus();
    if (!main.querySelector('script[src="/live.js"]')) changes.close();
  };
})();
