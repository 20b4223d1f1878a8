// Measures the way between this browser and the server: answers a second, then how fast bytes come and go.
"use strict";
(() => {
  const button = document.getElementById("measure");
  const said = document.getElementById("said");
  const rows = document.getElementById("rows");
  const headers = { "x-holdall-token": button.dataset.token };
  const SECONDS = 10;
  const STREAMS = 4;

  const ask = async (path, options) => {
    const answer = await fetch(path, { cache: "no-store", headers, ...options });
    if (!answer.ok) throw new Error((await answer.text()).trim() || `the server answered ${answer.status}`);
    return answer;
  };
  const now = () => performance.now() / 1000;

  const ping = async () => {
    const begun = now();
    await ask("/speed/ping", { method: "POST" });
    return (now() - begun) * 1000;
  };

  // Runs `once`, which gives how many bytes went, in several streams at once; gives bytes a second, and answer times meanwhile.
  const loaded = async (once) => {
    const begun = now();
    const end = begun + SECONDS;
    let bytes = 0;
    const stream = async () => {
      while (now() < end) bytes += await once();
    };
    const pings = [];
    const pinging = async () => {
      while (now() < end) pings.push(await ping());
    };
    await Promise.all([...Array.from({ length: STREAMS }, stream), pinging()]);
    return { rate: bytes / (now() - begun), pings };
  };

  const median = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];
  const jitter = (values) => {
    const steps = values.slice(1).map((value, at) => Math.abs(value - values[at]));
    return steps.reduce((sum, step) => sum + step, 0) / Math.max(1, steps.length);
  };

  const show = (words, value) => {
    const row = rows.insertRow();
    row.insertCell().textContent = words;
    row.insertCell().textContent = value;
  };
  const rate = (bytes) => `${(bytes / 1e6).toFixed(1)} MB/s (${Math.round((bytes * 8) / 1e6)} Mb/s)`;
  const time = (milliseconds) => `${milliseconds.toFixed(1)} ms`;

  const measure = async () => {
    rows.replaceChildren();
    await ask("/speed/begin", { method: "POST" });
    said.textContent = "Asking how long an answer takes …";
    const quiet = [];
    for (let count = 0; count < 20; count += 1) quiet.push(await ping());
    show("An answer takes", time(median(quiet)));
    show("It varies by", time(jitter(quiet)));
    said.textContent = "Taking bytes from the server …";
    const down = await loaded(async () => (await (await ask("/speed/down", { method: "POST" })).arrayBuffer()).byteLength);
    show("From the server", rate(down.rate));
    show("An answer meanwhile", time(median(down.pings)));
    said.textContent = "Sending bytes to the server …";
    const piece = new Uint8Array(1 << 20);
    for (let at = 0; at < piece.length; at += 65536) crypto.getRandomValues(piece.subarray(at, at + 65536));
    const up = await loaded(async () => {
      await ask("/speed/up", { method: "POST", body: piece });
      return piece.length;
    });
    show("To the server", rate(up.rate));
    show("An answer meanwhile", time(median(up.pings)));
    said.textContent = "Done. A backup from here cannot be faster than what goes to the server.";
  };

  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await measure();
    } catch (error) {
      said.textContent = `It was not measured: ${error.message}`;
    }
    button.disabled = false;
  });
})();
