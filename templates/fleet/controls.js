// What is above the table: how hosts stand, search, groups, filters, and light or dark.

const THEMES = ["auto", "light", "dark"];

function drawAbout() {
  find("about").textContent = `${counted(fleet.hosts.length, "host")}, checked ${fleet.at} in ${fleet.took} by gpunode ${fleet.version}`;
}

function tile(key, title, number, pressed, press) {
  const button = make("button", {type: "button", className: `tile ${key}`, "aria-pressed": String(pressed)}, make("strong", {}, number.toLocaleString("en")), " ", title);
  button.addEventListener("click", () => {
    press();
    changed();
    find("tiles").querySelector(`.tile.${key}`).focus();
  });
  return button;
}

function drawTiles() {
  const standings = STANDINGS.map((one, place) => [one, fleet.hosts.filter((host) => host.standing === place).length]);
  const odd = differs.filter(Boolean).length;
  find("tiles").replaceChildren(
    tile("all", "All", fleet.hosts.length, !state.standing && !state.odd, () => { state.standing = ""; state.odd = false; }),
    ...standings.filter(([one, number]) => number || state.standing === one.key).map(([one, number]) =>
      tile(one.key, one.title, number, state.standing === one.key, () => { state.standing = state.standing === one.key ? "" : one.key; })),
    tile("differ", "Differ from most", odd, state.odd, () => { state.odd = !state.odd; }));
}

function drawControls() {
  if (find("search").value !== state.search) find("search").value = state.search;
  find("group").value = state.group;
  find("chips").replaceChildren(...state.filters.map((one) => {
    const title = filterable.find((kind) => kind.key === one.key).title;
    const button = make("button", {type: "button", className: "chip", title: "Remove this filter"}, `${title}: `, make("bdi", {}, one.value), " ×");
    button.addEventListener("click", () => {
      state.filters = state.filters.filter((other) => other !== one);
      changed();
      find("filter-column").focus();
    });
    return button;
  }));
  find("count").textContent = shown.length === fleet.hosts.length ? "" : `${shown.length.toLocaleString("en")} of ${counted(fleet.hosts.length, "host")}`;
}

function option(value, text) {
  return make("option", {value}, text);
}

function fillControls() {
  find("group").replaceChildren(...fleet.groupings.map((one) => option(one.key, one.title)));
  find("filter-column").replaceChildren(option("", "by …"), ...filterable.map((one) => option(one.key, one.title)));
  fillValues();
}

function fillValues() {
  const kind = filterable.find((one) => one.key === find("filter-column").value);
  const select = find("filter-value");
  select.disabled = !kind;
  if (!kind) {
    select.replaceChildren(option("", "…"));
    return;
  }
  const counts = new Map();
  fleet.hosts.forEach((_, host) => {
    for (const value of kind.key === "check" ? idsOf(host) : [kind.text(host)]) counts.set(value, (counts.get(value) || 0) + 1);
  });
  const known = kind.values.map((value) => option(value, `${value} (${counts.get(value) || 0})`));
  const unknown = counts.get("") ? [option("", `not known (${counts.get("")})`)] : [];
  const asks = make("option", {value: "?", disabled: true, selected: true}, "choose …");
  select.replaceChildren(asks, ...known, ...unknown);
}

function addFilter() {
  const added = {key: find("filter-column").value, value: find("filter-value").value};
  if (!state.filters.some((one) => one.key === added.key && one.value === added.value)) state.filters.push(added);
  find("filter-column").value = "";
  fillValues();
  changed();
  find("filter-column").focus();
}

// A file's own storage may be closed to it.
function stored(theme) {
  try {
    if (theme) localStorage.setItem("gpunode-theme", theme);
    return localStorage.getItem("gpunode-theme") || "auto";
  } catch {
    return theme || "auto";
  }
}

function setTheme(theme) {
  const chosen = THEMES.includes(theme) ? theme : "auto";
  document.documentElement.dataset.theme = chosen;
  find("theme").textContent = `Theme: ${chosen}`;
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  stored(next);
  setTheme(next);
}
