// Runs before the first paint: no flash of the other theme.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  let theme = null;
  try { theme = localStorage.getItem("lancefleet.theme"); } catch { /* storage may be off */ }
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
})();
