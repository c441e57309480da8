// What happens when.

// The state is another: everything but the open host is drawn again, from the top.
function changed() {
  regroup();
  choose();
  active = 0;
  find("scroll").scrollTop = 0;
  drawHead();
  drawTiles();
  drawControls();
  drawRows(true);
  writeAddress();
}

function fromAddress() {
  readAddress();
  changed();
  showHost();
}

function onPaper(begins) {
  printing = begins;
  drawRows(true);
}

// Once before the next frame, however often it is asked for. Each for itself: a scroll must not drop a search.
const asked = new Map();
function soon(draw) {
  cancelAnimationFrame(asked.get(draw) || 0);
  asked.set(draw, requestAnimationFrame(() => draw()));
}
const drawAll = () => drawRows(true);
const drawSeen = () => drawRows(false);

fillControls();
drawAbout();
setTheme(stored());
fromAddress();
drawWidths();

addEventListener("hashchange", () => {
  // From one host to another, or to none, the table stays where it is.
  const words = new URLSearchParams(location.hash.slice(1)).get("host") || "";
  const opened = byKey.has(words) ? words : "";
  if (address(opened) === (location.hash || "#")) {
    state.host = opened;
    showHost();
  } else {
    fromAddress();
  }
});
addEventListener("beforeprint", () => onPaper(true));
addEventListener("afterprint", () => onPaper(false));
addEventListener("resize", () => soon(drawAll));
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, select, dialog[open]")) return;
  event.preventDefault();
  find("search").focus();
});
find("scroll").addEventListener("scroll", () => soon(drawSeen), {passive: true});
find("scroll").addEventListener("keydown", rowKeys);
find("rows").addEventListener("click", rowClick);
find("rows").addEventListener("focusin", (event) => {
  const made = event.target.closest("tr[data-number]");
  if (!made || Number(made.dataset.number) === active) return;
  const before = linkOf(active);
  if (before) before.tabIndex = -1;
  active = Number(made.dataset.number);
  linkOf(active).tabIndex = 0;
});
find("host").addEventListener("close", hostClosed);
find("theme").addEventListener("click", nextTheme);
find("controls").addEventListener("submit", (event) => event.preventDefault());
find("search").addEventListener("input", () => {
  state.search = find("search").value;
  soon(changed);
});
find("group").addEventListener("change", () => {
  state.group = find("group").value;
  changed();
});
find("filter-column").addEventListener("change", () => {
  fillValues();
  if (!find("filter-value").disabled) find("filter-value").focus();
});
find("filter-value").addEventListener("change", addFilter);
