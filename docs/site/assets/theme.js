// Runs before the page is drawn, so that it does not change its colours: the kept choice, else the system's.
(() => {
  let kept = null;
  try {
    kept = localStorage.getItem("tenon-docs-theme");
  } catch {
    // storage may be off; the system's choice is used
  }
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
})();
