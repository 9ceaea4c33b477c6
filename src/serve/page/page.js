// Keeps a page up to date: what changed is fetched once the server says that something did. Without this script the
// same pages work; they show what was so when they were asked for.
(() => {
  "use strict";
  const body = document.body;
  const live = document.getElementById("live");
  const say = (text) => { if (live && live.textContent !== text) live.textContent = text; };

  const units = [[129600, 86400, " days ago"], [5400, 3600, " h ago"], [90, 60, " min ago"], [5, 1, " s ago"]];
  const ago = (at) => {
    const seconds = Math.floor((Date.now() - at) / 1000);
    const unit = units.find(([from]) => seconds >= from);
    return unit ? Math.round(seconds / unit[1]) + unit[2] : "just now";
  };
  const tick = () => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const at = Date.parse(time.getAttribute("datetime"));
      if (!Number.isNaN(at) && time.textContent !== ago(at)) time.textContent = ago(at);
    }
  };

  // Where the focus is, so that it can be put back on the same thing after a part was replaced.
  const focused = (part) => {
    const element = document.activeElement;
    if (!element || !part.contains(element)) return null;
    const all = [...part.querySelectorAll("a[href], button, summary, [tabindex]")];
    return { href: element.getAttribute("href"), at: all.indexOf(element) };
  };
  const restore = (part, was) => {
    if (!was) return;
    const all = [...part.querySelectorAll("a[href], button, summary, [tabindex]")];
    const same = was.href && all.find((element) => element.getAttribute("href") === was.href);
    const next = same || all[Math.min(Math.max(was.at, 0), all.length - 1)];
    if (next) next.focus({ preventScroll: true });
  };
  // What the reader has unfolded stays so.
  const unfold = (part, next) => {
    for (const details of part.querySelectorAll("details[open][id]")) {
      const same = [...next.querySelectorAll("details")].find((other) => other.id === details.id);
      if (same) same.open = true;
    }
  };
  const show = (fresh) => {
    const parts = [...document.querySelectorAll("[data-part]")];
    const ids = (all) => all.map((part) => part.id).join();
    const freshParts = [...fresh.querySelectorAll("[data-part]")];
    if (ids(parts) !== ids(freshParts)) {
      const main = document.getElementById("main");
      const next = fresh.getElementById("main");
      if (!main || !next) return;
      const typed = document.getElementById("q");
      const [text, was] = [typed && typed.value, focused(main)];
      const typing = typed && document.activeElement === typed;
      unfold(main, next);
      main.replaceChildren(...next.childNodes);
      const again = document.getElementById("q");
      if (again && text !== null) again.value = text;
      if (typing && again) again.focus({ preventScroll: true }); else restore(main, was);
    } else {
      parts.forEach((part, at) => {
        const next = freshParts[at];
        unfold(part, next);
        const plain = (of) => of.innerHTML.replace(/(<time[^>]*>)[^<]*/g, "$1");
        if (plain(part) === plain(next)) return;
        const was = focused(part);
        part.replaceChildren(...next.childNodes);
        restore(part, was);
      });
    }
    document.title = fresh.title;
    tick();
  };

  let busy = false;
  let again = false;
  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const text = await answer.text();
      show(new DOMParser().parseFromString(text, "text/html"));
      say("");
    } catch {
      say("not connected; what is shown may be old");
    }
    busy = false;
    if (again) { again = false; refresh(); }
  };

  let source = null;
  const listen = () => {
    const address = body.dataset.events;
    if (!address || source) return;
    source = new EventSource(address);
    source.addEventListener("version", (event) => {
      const known = body.dataset.version;
      body.dataset.version = event.data;
      if (known === event.data) { say(""); return; }
      if (body.dataset.then === "tell") say("The Sync has changed since; load the page again to see it."); else refresh();
    });
    source.addEventListener("error", () => {
      say("not connected; what is shown may be old");
      // A refusal, as of too many who listen, is final for the browser; a cut connection is not.
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(() => { if (!document.hidden) listen(); }, 15000);
      }
    });
  };
  const rest = () => { if (source) { source.close(); source = null; } };
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : (tick(), listen())));
  window.addEventListener("pagehide", rest);
  window.addEventListener("pageshow", () => { if (!document.hidden) listen(); });
  setInterval(tick, 15000);
  tick();
  listen();
})();
