// Keeps a page up to date: what changed is fetched once the server says that something did. Filters while somebody types,
// keeps favourites in the browser, searches YAML and scales the graph. Without this script the same pages work; they
// show what was so when they were asked for.
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

  // Favourites: names of Syncs that this browser keeps. The server shows them first when it is told them.
  const KEPT = "moorline-favourites";
  const favourites = () => {
    try { return JSON.parse(localStorage.getItem(KEPT) || "[]").filter((name) => typeof name === "string").slice(0, 50); } catch { return []; }
  };
  const address = () => {
    const url = new URL(location.href);
    if (location.pathname === "/" && favourites().length) url.searchParams.set("fav", favourites().join());
    return url;
  };
  const toggle = (name) => {
    const kept = favourites();
    const next = kept.includes(name) ? kept.filter((other) => other !== name) : [name, ...kept];
    try { localStorage.setItem(KEPT, JSON.stringify(next)); } catch { say("this browser keeps no favourites"); }
    refresh();
  };
  let scale = 1;
  const scaled = (svg) => {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const base = (svg.dataset.base ||= svg.getAttribute("width") / width);
    svg.setAttribute("width", Math.round(width * base * scale));
    svg.setAttribute("height", Math.round(height * base * scale));
  };
  // Adds to a page what needs the script.
  const decorate = (root) => {
    for (const row of root.querySelectorAll("tr[data-sync]")) {
      const name = row.dataset.sync;
      const star = root.createElement("button");
      const kept = favourites().includes(name);
      star.type = "button";
      star.className = "star";
      star.dataset.star = name;
      star.textContent = kept ? "★" : "☆";
      star.setAttribute("aria-pressed", String(kept));
      star.setAttribute("aria-label", "Favourite " + name);
      row.querySelector("th").prepend(star);
    }
    if (scale !== 1) root.querySelectorAll(".picture svg").forEach(scaled);
  };

  // Where the focus is, so that it can be put back on the same thing after a part was replaced.
  const focused = (part) => {
    const element = document.activeElement;
    if (!element || !part.contains(element)) return null;
    const all = [...part.querySelectorAll("a[href], button, input, select, summary, [tabindex]")];
    return { href: element.getAttribute("href"), at: all.indexOf(element) };
  };
  const restore = (part, was) => {
    if (!was) return;
    const all = [...part.querySelectorAll("a[href], button, input, select, summary, [tabindex]")];
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
    decorate(fresh);
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
      const answer = await fetch(address(), { headers: { Accept: "text/html" } });
      const text = await answer.text();
      show(new DOMParser().parseFromString(text, "text/html"));
      say("");
    } catch {
      say("not connected; what is shown may be old");
    }
    busy = false;
    if (again) { again = false; refresh(); }
  };

  // A filter follows what is typed and chosen; the address follows as well, so it can be kept and shared.
  let pause = 0;
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[role=search]");
    if (!form) return;
    clearTimeout(pause);
    pause = setTimeout(() => {
      const url = new URL(form.action);
      url.search = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
      history.replaceState(null, "", url);
      refresh();
    }, 150);
  });
  document.addEventListener("click", (event) => {
    const star = event.target.closest("[data-star]");
    if (star) toggle(star.dataset.star);
  });
  // A person who unfolds the roll-back writes the reason next.
  document.addEventListener("toggle", (event) => {
    if (event.target.open) event.target.querySelector("input[name=reason]")?.focus();
  }, true);
  document.addEventListener("wheel", (event) => {
    const svg = event.ctrlKey && event.target.closest(".picture")?.querySelector("svg");
    if (!svg) return;
    event.preventDefault();
    scale = Math.min(3, Math.max(0.4, scale * (event.deltaY < 0 ? 1.15 : 0.87)));
    scaled(svg);
  }, { passive: false });
  const find = document.getElementById("find");
  if (find && window.Highlight && CSS.highlights) {
    document.getElementById("search").hidden = false;
    find.addEventListener("input", () => {
      const [text, ranges] = [find.value.trim().toLowerCase(), []];
      const walk = document.createTreeWalker(document.querySelector(".beside"), NodeFilter.SHOW_TEXT);
      while (text && walk.nextNode() && ranges.length < 1000) {
        const node = walk.currentNode;
        const found = node.parentElement.closest(".yaml") ? node.textContent.toLowerCase() : "";
        for (let at = found.indexOf(text); at >= 0; at = found.indexOf(text, at + text.length)) {
          const range = document.createRange();
          range.setStart(node, at);
          range.setEnd(node, Math.min(at + text.length, node.length));
          ranges.push(range);
          for (let up = node.parentElement; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
        }
      }
      CSS.highlights.set("found", new Highlight(...ranges));
      document.getElementById("found").textContent = text ? ranges.length + " found" : "";
      ranges[0]?.startContainer.parentElement.scrollIntoView({ block: "nearest" });
    });
  }

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
  decorate(document);
  if (address().searchParams.has("fav")) refresh();
  listen();
})();
