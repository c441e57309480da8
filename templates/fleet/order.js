// Which hosts are shown, and in which order.

let grouping = fleet.groupings[0];
let differs = []; // host -> how many of its values differ from the group's
let shown = []; // places of hosts
const haystacks = []; // host -> what is searched, made when it is first needed

// A value's place in its column is its order.
const columns = [
  {key: "host", title: "Host", about: "as it was named", place: (host) => host, text: (host) => fleet.hosts[host].name},
  {key: "standing", title: "Standing", about: "the worst of its checks", place: standingPlace, text: standingText},
  {key: "differs", title: "Differs", about: "values that most hosts of the group do not have", downFirst: true,
    place: (host) => (fleet.hosts[host].counts ? differs[host] : UNKNOWN), text: (host) => (differs[host] ? String(differs[host]) : "")},
  ...fleet.columns.map((column, number) => ({...column, number,
    place: (host) => fleet.hosts[host].row[number],
    text: (host) => valueText(column, fleet.hosts[host].row[number])})),
];
// A check that only follows from another has failed as well.
const checksOf = (one) => [one.id, ...one.follow.map(([id]) => id)];
// A host without a report may fail the check that asks whether it can be reached.
const unreachedBy = (one) => (one.why || []).slice(3).filter(Boolean);
const idsOf = (host) => {
  const one = fleet.hosts[host];
  return new Set([...one.findings.flatMap((place) => checksOf(fleet.findings[place])), ...unreachedBy(one)]);
};
const filterable = [
  {key: "check", title: "Check", values: [...new Set([...fleet.findings.flatMap(checksOf), ...fleet.hosts.flatMap(unreachedBy)])].sort(), has: (host, value) => idsOf(host).has(value)},
  ...columns.filter((one) => one.values && one.key !== "failing").map((column) => ({...column, has: (host, value) => column.text(host) === value})),
];

function followText([id, summary]) {
  return `${id}: ${summary}`;
}

function valueText(column, place) {
  return place === UNKNOWN ? "" : column.values[place];
}

// Of two that fail, the one that fails more checks is worse.
function standingPlace(host) {
  const one = fleet.hosts[host];
  const [errors, warnings] = one.counts || [0, 0];
  return one.standing * 1e6 - Math.min(errors, 999) * 1000 - Math.min(warnings, 999);
}

function standingText(host) {
  const one = fleet.hosts[host];
  const word = STANDINGS[one.standing].word;
  const number = one.counts ? one.counts[one.standing - 1] : 0;
  return one.standing === 1 || one.standing === 2 ? `${word} ${number}` : word;
}

function mostOf(host, column) {
  const group = grouping.of[host];
  return group === UNKNOWN ? null : grouping.most[group][column.number];
}

// "odd": most of the group have another value; "split": no value is that of most; "": as most, or nothing to compare.
function deviation(host, column) {
  if (!column.compared) return "";
  const place = column.place(host);
  const most = mostOf(host, column);
  if (place === UNKNOWN || most === null || most[2] < 2) return "";
  return most[0] === UNKNOWN ? "split" : most[0] === place ? "" : "odd";
}

function regroup() {
  grouping = fleet.groupings.find((one) => one.key === state.group);
  differs = fleet.hosts.map((_, host) => columns.filter((column) => column.values && deviation(host, column) === "odd").length);
}

function haystack(host) {
  if (haystacks[host] === undefined) {
    const one = fleet.hosts[host];
    const found = one.findings.map((place) => fleet.findings[place]).flatMap((each) => [each.id, each.summary, ...each.follow.map(followText)]);
    haystacks[host] = [one.name, one.own || "", ...columns.map((column) => column.text(host)), ...found, ...(one.why || [])].join("\n").toLowerCase();
  }
  return haystacks[host];
}

function filtersByKind() {
  const kinds = new Map();
  for (const one of state.filters) kinds.set(one.key, [...(kinds.get(one.key) || []), one.value]);
  return [...kinds].map(([key, values]) => [filterable.find((kind) => kind.key === key), values]);
}

// Two values of one column widen, two columns narrow.
function choose() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const kinds = filtersByKind();
  shown = [];
  for (let host = 0; host < fleet.hosts.length; host += 1) {
    if (state.standing && STANDINGS[fleet.hosts[host].standing].key !== state.standing) continue;
    if (state.odd && !differs[host]) continue;
    if (!kinds.every(([kind, values]) => values.some((value) => kind.has(host, value)))) continue;
    if (!words.every((word) => haystack(host).includes(word))) continue;
    shown.push(host);
  }
  const column = columns.find((one) => one.key === state.sort);
  const sign = state.down ? -1 : 1;
  shown.sort((a, b) => compare(column.place(a), column.place(b), sign) || a - b);
}

// What is not known is last in either direction.
function compare(a, b, sign) {
  if (a === UNKNOWN || b === UNKNOWN) return (a === UNKNOWN) - (b === UNKNOWN);
  return sign * (a - b);
}
