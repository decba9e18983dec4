(() => {
  "use strict";
  const button = document.getElementById("theme");
  // A page from a file may not be allowed to store anything; then the choice lasts as long as the page.
  const themes = ["auto", "light", "dark"];
  let theme = "auto";
  try { theme = localStorage.getItem("cg-bench-theme") || "auto"; } catch { /* as it is */ }
  function dress(name) {
    theme = themes.includes(name) ? name : "auto";
    if (theme === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
    button.querySelector("b").textContent = theme;
    try { localStorage.setItem("cg-bench-theme", theme); } catch { /* as above */ }
  }
  button.addEventListener("click", () => dress(themes[(themes.indexOf(theme) + 1) % themes.length]));
  dress(theme);
})();
