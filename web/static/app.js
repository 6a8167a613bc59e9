// Comfort only: every page works without this file.
"use strict";
(() => {
  const root = document.documentElement;
  const main = document.getElementById("main");
  const say = (text) => { document.getElementById("live").textContent = text; };

  const remembered = (key) => { try { return localStorage.getItem("lancefleet." + key); } catch { return null; } };
  const remember = (key, value) => { try { localStorage.setItem("lancefleet." + key, value); } catch { /* storage may be off */ } };

  // Theme: the system's until somebody chooses.
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remember("theme", root.dataset.theme);
  });

  // Names typed into forms are kept on this machine.
  for (const input of document.querySelectorAll("[data-keep]")) {
    input.value = input.value || remembered(input.dataset.keep) || "";
    input.addEventListener("change", () => remember(input.dataset.keep, input.value));
  }

  // Copy buttons.
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        say("Copied");
        button.textContent = "Copied";
      } catch { say("The browser did not allow copying; select the text instead."); }
    });
  }

  // Rows: j and k move, Enter opens (the row's link has the focus).
  const rows = () => [...main.querySelectorAll("a[data-row]")];
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement?.closest("tr")?.querySelector("a[data-row]") ?? document.activeElement);
    const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
    next.focus();
    next.closest("tr").scrollIntoView({ block: "nearest" });
  };

  // Refresh: fetch this very address and swap the parts marked data-live, so that
  // scroll, focus and what is being typed stay.
  let busy = false;
  const refresh = async (said) => {
    if (busy) return;
    busy = true;
    root.classList.add("refreshing");
    try {
      const address = new URL(location.href);
      address.searchParams.delete("done");
      if (address.searchParams.has("fresh")) { location.reload(); return; }
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (answer.redirected && new URL(answer.url).pathname === "/login") { location.reload(); return; } // the session has ended
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok && !fresh.getElementById("main")) throw new Error(answer.statusText);
      swap(fresh);
      if (said) say("Refreshed at " + new Date().toISOString().slice(11, 19) + " UTC");
    } catch {
      say("Refreshing did not work; what was shown before is kept.");
      root.classList.add("offline");
      return;
    } finally {
      busy = false;
      root.classList.remove("refreshing");
    }
    root.classList.remove("offline");
  };

  // Selected rows, for what is done with many; a refresh keeps those that are still there.
  const picks = () => [...main.querySelectorAll('input[form="bulk"][name="id"]')];
  const counted = () => {
    const out = document.getElementById("selected");
    if (!out) return;
    const n = picks().filter((p) => p.checked).length;
    out.textContent = n ? n + " selected" : "none selected";
  };
  main.addEventListener("change", (event) => { if (event.target.matches?.('input[form="bulk"]')) counted(); });

  const swap = (fresh) => {
    for (const old of document.querySelectorAll("[data-live]")) {
      const part = fresh.getElementById(old.id);
      if (!part || part.innerHTML === old.innerHTML) continue;
      const focus = old.contains(document.activeElement) ? document.activeElement : null;
      if (focus && focus.matches("input:not([type=checkbox]), select, textarea")) continue;
      const href = focus && focus.getAttribute("href");
      const picked = focus && focus.matches('input[form="bulk"]') && focus.value;
      const chosen = new Set(picks().filter((p) => old.contains(p) && p.checked).map((p) => p.value));
      const everyone = old.querySelector('#bulk input[name="all"]')?.checked;
      old.replaceWith(part);
      for (const p of picks()) p.checked ||= chosen.has(p.value);
      if (everyone) part.querySelector('#bulk input[name="all"]').checked = true;
      counted();
      if (picked) picks().find((p) => p.value === picked)?.focus({ preventScroll: true });
      if (href) [...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === href)?.focus({ preventScroll: true });
    }
  };

  // By itself, when asked for, and only while somebody can see it.
  const select = document.getElementById("refresh");
  const chosen = remembered("refresh");
  if ([...select.options].some((o) => o.value === chosen)) select.value = chosen;
  let timer = 0;
  const arm = () => {
    clearInterval(timer);
    const seconds = Number(select.value);
    if (seconds > 0 && !document.hidden) timer = setInterval(() => refresh(false), seconds * 1000);
  };
  select.addEventListener("change", () => { remember("refresh", select.value); arm(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && Number(select.value) > 0) refresh(false); arm(); });
  arm();

  // Relative times grow old while a page stays open.
  const span = (ms) => {
    const s = Math.floor(Math.abs(ms) / 1000);
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min";
    if (s < 172800) return Math.floor(s / 3600) + " h";
    if (s < 63072000) return Math.floor(s / 86400) + " d";
    return Math.floor(s / 31536000) + " y";
  };
  const ahead = Date.now() - Number(document.body.dataset.now); // of the server's clock
  setInterval(() => {
    if (document.hidden) return;
    for (const t of document.querySelectorAll("time[datetime]")) {
      const ms = Date.now() - ahead - Date.parse(t.dateTime);
      const text = Math.abs(ms) < 1000 || ms > 0 && "due" in t.dataset ? "now" : ms < 0 ? "in " + span(ms) : span(ms) + " ago";
      if (t.textContent !== text) t.textContent = text;
    }
  }, 1000);

  const help = document.getElementById("help");
  document.getElementById("help-open").addEventListener("click", () => help.showModal());

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const target = event.target;
    if (target.matches?.("input:not([type=checkbox]), select, textarea")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    switch (event.key) {
      case "/": {
        const search = document.getElementById("search");
        if (!search) { location.href = "/"; } else { search.focus(); search.select(); }
        break;
      }
      case "?": help.showModal(); break;
      case "r": refresh(true); break;
      case "j": move(1); break;
      case "k": move(-1); break;
      case "x": {
        const pick = document.activeElement?.closest("tr")?.querySelector('input[form="bulk"]');
        if (!pick) return;
        pick.click();
        break;
      }
      default: return;
    }
    event.preventDefault();
  });
})();
