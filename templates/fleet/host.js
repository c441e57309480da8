// One host: why it has no report, or its findings with evidence and remedy, and what it has next to what most have.

function showHost() {
  const dialog = find("host");
  if (!state.host) {
    if (dialog.open) dialog.close();
    return;
  }
  const host = byKey.get(state.host);
  dialog.replaceChildren(hostHead(host), make("div", {className: "page"}, ...hostPage(host)));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  if (shown.includes(host)) active = shown.indexOf(host);
}

function hostHead(host) {
  const one = fleet.hosts[host];
  const close = make("button", {type: "button", className: "quiet", id: "close", title: "Escape", autofocus: true}, "Close");
  close.addEventListener("click", () => find("host").close());
  return make("div", {className: "host-head"},
    make("h2", {id: "host-name"}, one.name),
    make("span", {className: `pill ${STANDINGS[one.standing].key}`}, standingText(host)),
    make("span", {className: "steps"}, step(host, -1, "Previous"), step(host, 1, "Next"), close));
}

function step(host, by, word) {
  const next = shown[shown.indexOf(host) + by];
  const button = make("button", {type: "button", className: "quiet", disabled: !shown.includes(host) || next === undefined}, word);
  button.addEventListener("click", () => {
    state.host = fleet.hosts[next].key;
    writeAddress();
    showHost();
    [...find("host").querySelectorAll(".steps button")].find((one) => one.textContent === word && !one.disabled)?.focus();
  });
  return button;
}

function hostPage(host) {
  const one = fleet.hosts[host];
  if (!one.counts) {
    const [problem, evidence, remedy, check] = one.why;
    return [finding({id: check || "no report", severity: "error", summary: problem, evidence, remedy, follow: [], notes: []})];
  }
  const [errors, warnings, passed, without] = one.counts;
  const words = [one.own, one.profile, `${counted(errors, "error")}, ${counted(warnings, "warning")}, ${passed} passed, ${without} not applicable or left out`];
  const found = one.findings.map((place) => finding(fleet.findings[place]));
  return [
    make("p", {className: "dim"}, words.filter(Boolean).join(" · ")),
    make("h3", {}, "Findings"),
    ...(found.length ? found : [make("p", {}, "Every check that applies passes.")]),
    make("h3", {}, "What it has"),
    values(host),
  ];
}

function finding(one) {
  const rows = [["evidence", one.evidence], ["remedy", one.remedy], ...one.follow.map((each) => ["so", followText(each)]), ...one.notes];
  const list = make("dl", {}, ...rows.filter(([, text]) => text).flatMap(([label, text]) => [make("dt", {}, label), make("dd", {className: label}, text)]));
  return make("article", {className: `finding ${one.severity}`},
    make("h4", {}, make("span", {className: "severity"}, one.severity), make("code", {}, one.id)),
    make("p", {}, one.summary), list);
}

function values(host) {
  const head = make("tr", {}, ...["", "Here", grouping.of[host] === UNKNOWN ? "Not compared" : `Most of ${grouping.names[grouping.of[host]]}`].map((text) => make("th", {scope: "col"}, text)));
  const rows = columns.filter((column) => column.values && column.key !== "failing").map((column) => {
    const state = deviation(host, column);
    return make("tr", {className: state},
      make("th", {scope: "row", title: column.about}, column.title),
      make("td", {}, state ? make("span", {className: "mark"}, MARKS[state]) : "", column.text(host) || "—"),
      make("td", {}, usual(host, column)));
  });
  return make("table", {className: "values"}, make("thead", {}, head), make("tbody", {}, ...rows));
}

function usual(host, column) {
  const most = column.compared ? mostOf(host, column) : null;
  if (most === null || !most[2]) return "";
  return most[0] === UNKNOWN ? `none: at most ${most[1]} of ${most[2]} have the same` : `${column.values[most[0]]} (${most[1]} of ${most[2]})`;
}

function hostClosed() {
  state.host = "";
  writeAddress();
  goTo(active);
}
