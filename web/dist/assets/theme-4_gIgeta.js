// Sets the colours before the first paint. It is a file of its own, which the page waits for: the other scripts are
// read after the page is painted.
(() => {
  const chosen = localStorage.getItem("tenon.theme");
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  // Without a token the page asks for one: the frame that index.html has is not shown before.
  if (!sessionStorage.getItem("tenon.token") && !/(^#|&)token=/.test(location.hash)) document.documentElement.dataset.unsigned = "";
})();
