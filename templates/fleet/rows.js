// The table. Of many rows those in sight are there, between two rows that are as high as the others together.

const WHOLE = 150; // rows that are all there
const MORE = 20; // rows beyond those in sight
const MARKS = {odd: "◆", split: "◇"};
let active = 0; // the place in `shown` of the row that the Tab key comes to
let from = 0;
let to = 0;
let rowHeight = 34;
let printing = false;

function drawHead() {
  find("head").replaceChildren(...columns.map((column) => {
    const sorted = state.sort === column.key;
    const arrow = sorted ? (state.down ? "▼" : "▲") : "";
    const button = make("button", {type: "button", title: column.about}, column.title, make("span", {className: "arrow", "aria-hidden": "true"}, arrow));
    button.addEventListener("click", () => sortBy(column));
    return make("th", {scope: "col", className: `of-${column.key}`, "aria-sort": sorted ? (state.down ? "descending" : "ascending") : "none"}, button);
  }));
}

// A row without height that has the longest value of each column: what is in sight does not change their widths.
function drawWidths() {
  const longest = (texts) => texts.reduce((most, text) => (text.length > most.length ? text : most), "");
  find("widths").replaceChildren(make("tr", {}, ...columns.map((column) => {
    const texts = column.values || fleet.hosts.map((_, host) => column.text(host));
    const inside = column.key === "standing" ? "pill" : "mark";
    return make("td", {className: `of-${column.key} odd`}, make("span", {className: inside}, MARKS.odd), longest(texts));
  })));
}

function sortBy(column) {
  state.down = state.sort === column.key ? !state.down : Boolean(column.downFirst);
  state.sort = column.key;
  changed();
  find("head").children[columns.indexOf(column)].firstChild.focus();
}

function row(number) {
  const host = shown[number];
  const one = fleet.hosts[host];
  const link = make("a", {href: address(one.key), tabIndex: number === active ? 0 : -1}, one.name);
  const cells = columns.slice(1).map((column) => cell(host, column));
  const name = make("th", {scope: "row", className: "of-host", title: one.name}, link);
  if (!one.counts) {
    cells.splice(2, cells.length, make("td", {className: "of-why", colSpan: columns.length - 3, title: one.why[0]}, one.why[0]));
  }
  const made = make("tr", {className: STANDINGS[one.standing].key, "aria-rowindex": number + 2}, name, ...cells);
  made.dataset.number = number;
  return made;
}

function cell(host, column) {
  const text = column.text(host);
  if (column.key === "standing") return make("td", {className: "of-standing"}, make("span", {className: "pill"}, text));
  if (!column.values) return make("td", {className: `of-${column.key}`}, text);
  const state = deviation(host, column);
  const made = make("td", {className: `of-${column.key} ${state}`, title: state ? `${text} (${most(host, column)})` : text}, text || (column.key === "failing" ? "" : "—"));
  if (state) made.prepend(make("span", {className: `mark ${state}`, "aria-hidden": "true"}, MARKS[state]));
  if (state) made.append(make("span", {className: "hidden"}, state === "odd" ? " (differs from most)" : " (no value is that of most)"));
  return made;
}

// "most have 595.91.07: 40 of 42".
function most(host, column) {
  const [place, count, known] = mostOf(host, column);
  return place === UNKNOWN ? `no value is that of most of ${known}` : `most have ${column.values[place]}: ${count} of ${known}`;
}

function gap(rows) {
  const made = make("tr", {className: "gap", "aria-hidden": "true"}, make("td", {colSpan: columns.length}));
  made.style.height = `${rows * rowHeight}px`;
  return made;
}

// Draws the rows in sight; `anew` also where these are there already.
function drawRows(anew) {
  const scroll = find("scroll");
  const first = Math.floor(scroll.scrollTop / rowHeight);
  const last = Math.min(shown.length, first + Math.ceil(scroll.clientHeight / rowHeight) + 1);
  if (!anew && first >= from && last <= to) return;
  const all = printing || shown.length <= WHOLE;
  from = all ? 0 : Math.max(0, Math.min(first, shown.length - 1) - MORE);
  to = all ? shown.length : Math.min(shown.length, last + MORE);
  const focused = find("rows").contains(document.activeElement);
  const rows = [];
  if (from > 0) rows.push(gap(from));
  for (let number = from; number < to; number += 1) rows.push(row(number));
  if (to < shown.length) rows.push(gap(shown.length - to));
  if (!shown.length) rows.push(make("tr", {className: "none"}, make("td", {colSpan: columns.length}, "No host is like that.")));
  find("rows").replaceChildren(...rows);
  find("hosts").setAttribute("aria-rowcount", shown.length + 1);
  measure();
  if (focused) (linkOf(active) || scroll).focus({preventScroll: true});
}

function measure() {
  const one = find("rows").querySelector("tr[data-number]");
  if (one && !printing) rowHeight = one.getBoundingClientRect().height || rowHeight;
}

function linkOf(number) {
  return find("rows").querySelector(`tr[data-number="${number}"] a`);
}

// The row that has the focus becomes another, which comes into sight.
function goTo(number) {
  if (!shown.length) return;
  active = Math.max(0, Math.min(number, shown.length - 1));
  const scroll = find("scroll");
  const head = find("head").getBoundingClientRect().height;
  const top = active * rowHeight;
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  else if (top + rowHeight + head > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + rowHeight + head - scroll.clientHeight;
  drawRows(true);
  linkOf(active).focus({preventScroll: true});
}

function rowKeys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const page = Math.max(1, Math.floor(find("scroll").clientHeight / rowHeight) - 2);
  const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
  if (!(event.key in steps) || !event.target.closest("#rows, #scroll") || event.target.closest("#head")) return;
  event.preventDefault();
  const inRows = find("rows").contains(event.target);
  const far = event.key === "Home" || event.key === "End";
  goTo(inRows || far ? active + steps[event.key] : Math.floor(find("scroll").scrollTop / rowHeight));
}

function rowClick(event) {
  const made = event.target.closest("tr[data-number]");
  if (!made || event.target.closest("a") || String(getSelection())) return;
  active = Number(made.dataset.number);
  location.hash = address(fleet.hosts[shown[active]].key);
}
