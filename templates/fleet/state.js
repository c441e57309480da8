// The page's data, what is shown of it, and the address that leads back there.

const fleet = JSON.parse(document.getElementById("fleet").textContent);
const UNKNOWN = -1;
const STANDINGS = [
  {key: "lost", word: "no answer", title: "No answer"},
  {key: "fail", word: "fails", title: "Fail"},
  {key: "warn", word: "warns", title: "Warn"},
  {key: "unjudged", word: "no verdict", title: "No verdict"},
  {key: "pass", word: "passes", title: "Pass"},
];
const byKey = new Map(fleet.hosts.map((host, place) => [host.key, place]));
const state = {search: "", standing: "", odd: false, group: fleet.groupings[0].key, sort: "standing", down: false, filters: [], host: ""};

// An element with properties and children. Strings become text nodes: no text of a host is ever read as markup.
function make(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.includes("-") || name === "role" || name === "for") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
}

function find(id) {
  return document.getElementById(id);
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

// What the address says after #; what it does not say is as at the beginning.
function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  state.search = words.get("search") || "";
  state.standing = STANDINGS.some((one) => one.key === words.get("standing")) ? words.get("standing") : "";
  state.odd = words.has("odd");
  state.group = fleet.groupings.some((one) => one.key === words.get("group")) ? words.get("group") : fleet.groupings[0].key;
  state.sort = columns.some((one) => one.key === words.get("sort")) ? words.get("sort") : "standing";
  state.down = words.has("down");
  state.filters = words.getAll("only").map((text) => {
    const end = text.indexOf(":");
    return {key: text.slice(0, end), value: text.slice(end + 1)};
  }).filter((one) => filterable.some((kind) => kind.key === one.key));
  state.host = byKey.has(words.get("host")) ? words.get("host") : "";
}

function address(host) {
  const words = new URLSearchParams();
  if (state.search) words.set("search", state.search);
  if (state.standing) words.set("standing", state.standing);
  if (state.odd) words.set("odd", "");
  if (state.group !== fleet.groupings[0].key) words.set("group", state.group);
  if (state.sort !== "standing") words.set("sort", state.sort);
  if (state.down) words.set("down", "");
  for (const one of state.filters) words.append("only", `${one.key}:${one.value}`);
  if (host) words.set("host", host);
  return `#${words}`;
}

function writeAddress() {
  history.replaceState(null, "", address(state.host));
}
