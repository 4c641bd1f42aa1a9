/* What the theme leaves open for readers with a keyboard, a small screen, or a copy on disk. */

// A page on disk may not be fetched by another one, so search results come without their summaries there.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

/** Give whatever scrolls sideways a stop for the Tab key and a name. */
function reachable(element, name) {
  if (element.scrollWidth > element.clientWidth && !element.closest("[tabindex='0']")) {
    element.tabIndex = 0;
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", name);
  }
}

function wrapTables() {
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (table.closest(".scrolls, .pst-scrollable-table-container")) continue;
    const frame = document.createElement("div");
    frame.className = "scrolls";
    table.replaceWith(frame);
    frame.append(table);
  }
}

/** What has no words gets some: the arrows that unfold the side bar, and links that are nothing but a formula. */
function nameThings() {
  for (const one of document.querySelectorAll(".bd-sidebar-primary summary")) {
    one.setAttribute("aria-label", `Pages below ${one.closest("li").querySelector("a").textContent.trim()}`);
  }
  for (const one of document.querySelectorAll(".bd-article a .math")) {
    one.closest("a").setAttribute("aria-label", `symbol ${one.textContent.replace(/\\[()]/g, "")}`);
  }
}

function makeReachable() {
  for (const element of document.querySelectorAll(".scrolls, .pst-scrollable-table-container")) reachable(element, "table");
  for (const element of document.querySelectorAll(".bd-article pre")) reachable(element, "code or output");
  for (const element of document.querySelectorAll(".bd-article :is(div.math, mjx-container)")) reachable(element, "formula");
}

document.addEventListener("DOMContentLoaded", () => {
  nameThings();
  wrapTables();
  makeReachable();
});
addEventListener("load", () => {
  makeReachable();
  globalThis.MathJax?.startup?.promise?.then(makeReachable);
});
addEventListener("resize", makeReachable);

// Folded hints are open on paper.
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll(".bd-article details:not([open])")) {
    one.open = true;
    one.dataset.opened = "";
  }
});
addEventListener("afterprint", () => {
  for (const one of document.querySelectorAll("details[data-opened]")) {
    one.open = false;
    delete one.dataset.opened;
  }
});
