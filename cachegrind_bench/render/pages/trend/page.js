(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const count = data.shas.length;
  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

  // Differences in digits of five bits, the lowest first; `!` and a number repeat the last one. See data.py.
  function unpack(text) {
    const numbers = [];
    let place = 0, total = 0, step = 0;
    const read = () => {
      let value = 0, scale = 1, digit;
      do {
        digit = DIGITS.indexOf(text[place++]);
        value += (digit % 32) * scale;
        scale *= 32;
      } while (digit >= 32);
      return value % 2 ? -(value + 1) / 2 : value / 2;
    };
    while (place < text.length) {
      let times = 1;
      if (text[place] === "!") { place += 1; times = read(); } else { step = read(); }
      for (; times > 0; times -= 1) { total += step; numbers.push(total); }
    }
    return numbers;
  }

  const minutes = unpack(data.minutes);
  const authors = unpack(data.author).map((number) => data.authors[number]);
  const view = { from: 0, to: count - 1, dates: false };

  // --- Numbers and words -------------------------------------------------------------------------------------------------

  const grouped = (number) => number.toLocaleString("en-US");
  const day = (index) => new Date(minutes[index] * 60000).toISOString().slice(0, 10);
  const moment = (index) => new Date(minutes[index] * 60000).toISOString().slice(0, 16).replace("T", " ") + " UTC";
  function change(before, after) {
    if (before === after) return "0 %";
    if (before < 100) return "";  // a percentage of a few says nothing
    const percent = 100 * (after - before) / before;
    const text = Math.abs(percent) < 0.001 ? percent.toExponential(1) : String(Number(percent.toPrecision(3)));
    return (percent > 0 ? "+" : "") + text + " %";
  }
  function compact(number, step) {
    const [factor, unit] = [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]].find(([least]) => number >= least) || [1, ""];
    let digits = 0;
    while (digits < 12 && Math.abs(Math.round(step * 10 ** digits / factor) - step * 10 ** digits / factor) > 1e-9) digits += 1;
    return (number / factor).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + unit;
  }
  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  function drawn(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  // --- Charts ------------------------------------------------------------------------------------------------------------

  // The left edge of a commit's column, in columns; by date, columns are as wide as the time until the next commit.
  function edge(index) {
    if (!view.dates || index >= count) return index;
    const whole = minutes[count - 1] - minutes[0];
    return whole ? (minutes[index] - minutes[0]) * (count - 1) / whole : index;
  }
  const middle = (index) => view.dates ? edge(index) : index + 0.5;
  const left = () => edge(view.from);
  const width = () => Math.max(edge(view.to + 1) - left(), 1e-6);
  const percent = (at) => (100 * (at - left()) / width()).toFixed(3) + "%";
  const inside = (index) => index >= view.from && index <= view.to;

  // The same as Scale in svg.py.
  function scaleOf(values, height) {
    let low = values.length ? Math.min(...values) : 0, high = values.length ? Math.max(...values) : 0;
    const lacking = Math.max(Math.max(Math.floor(high / 50), 4) - (high - low), 0);
    const air = Math.floor((high - low + lacking) / 12) + 1;
    low = Math.max(0, low - Math.floor(lacking / 2) - air);
    high += Math.floor(lacking / 2) + air;
    const span = high - low;
    const power = 10 ** (String(Math.max(1, Math.floor(span / 4))).length - 1);
    const step = [1, 2, 5].map((factor) => factor * power).find((size) => Math.floor(span / size) < 4) || 10 * power;
    return { low, high, step, place: (value) => height * (high - value) / span };
  }

  const charts = [];
  data.rows.forEach((row, number) => {
    const article = byId(row.anchor), svg = article.querySelector("svg.chart");
    const row_ = { article, id: article.dataset.id, states: article.dataset.states.split(" "), line: document.querySelector(`[data-row="${row.anchor}"]`) };
    const chart = { ...row_, anchor: row.anchor, svg, number, named: row.named, weights: row.weights, cursor: null, chosen: [] };
    charts.push(chart);
    if (!svg) return;
    let numbers = null;
    // Where there is little room, numbers are counted in thousands or more: see data.py.
    const grain = (name) => row.grain[name] || 1;
    chart.rough = (name) => grain(name) > 1 ? "≈ " : "";
    chart.numbers = () => numbers ??= Object.fromEntries(
      ["at", "failed", "taken", "value", "ir", "ll", "ram", "key"].map((name) => [name, unpack(row[name]).map((number) => number * grain(name))]));
    bring(chart);
  });

  function draw(chart) {
    const numbers = chart.numbers(), { svg } = chart, { at, key } = numbers;
    const held = at.findLastIndex((index) => index < view.from);
    const shown = [...at.keys()].filter((place) => inside(at[place]) || place === held);
    for (const plot of svg.querySelectorAll(".plot")) {
      const values = numbers[plot.classList[1]], height = plot.height.baseVal.value, top = plot.y.baseVal.value;
      const scale = scaleOf(shown.map((place) => values[place]), height);
      // A level begins at its reading, which is in the middle of a commit's column.
      plot.setAttribute("viewBox", `${left() - (view.dates ? 0 : 0.5)} 0 ${width()} ${height}`);
      let path = "";
      for (const place of shown) {
        const x = edge(at[place]).toFixed(2), y = scale.place(values[place]).toFixed(1);
        path += !path || key[place] !== key[place - 1] ? (path && `H${x}`) + `M${x} ${y}` : `H${x}V${y}`;
      }
      if (shown.length) path += `H${edge(at[shown[shown.length - 1]] + 1).toFixed(2)}`;
      plot.firstElementChild.setAttribute("d", path);
      if (plot.classList[1] !== "value") continue;
      const dots = plot.querySelector(".dots") || plot.appendChild(drawn("path", { class: "dots" }));
      dots.setAttribute("d", shown.length > 40 ? "" :
        shown.map((place) => `M${edge(at[place]).toFixed(2)} ${scale.place(values[place]).toFixed(1)}h0`).join(""));
      const half = view.dates ? 0 : 0.5;
      plot.querySelectorAll(".bar").forEach((bar, taken) => bar.setAttribute("d", shown.filter((place) => numbers.taken.includes(place) === Boolean(taken))
        .map((place) => `M${(edge(at[place]) - half).toFixed(2)} ${height}H${(edge(at[place] + 1) - half).toFixed(2)}`).join("")));
      ruled(chart, scale, top, height);
    }
    for (const rule of svg.querySelectorAll(".rule")) {
      const index = Number(rule.dataset.at);
      for (const [name, child] of [["x1", "line"], ["x2", "line"], ["x", "text"]])
        rule.querySelector(child)?.setAttribute(name, percent(middle(index)));
      rule.querySelector("text")?.classList.toggle("turned", parseFloat(percent(middle(index))) > 72);
      rule.toggleAttribute("hidden", !inside(index));
    }
    const crosses = svg.querySelector(".crosses"), failed = numbers.failed.filter(inside);
    crosses?.setAttribute("x", failed.map((index) => percent(middle(index))).join(" "));
    if (crosses) crosses.lastChild.data = "×".repeat(failed.length);
    const labels = svg.querySelectorAll(".dates text");
    let free = 0, last = "";  // the same as _dates in chart.py
    labels.forEach((label, number) => {
      const index = Math.round(view.from + (view.to - view.from + 1) * number / labels.length);
      const place = left() + width() * number / labels.length;
      let shownIndex = Math.min(index, count - 1);
      if (view.dates) for (shownIndex = view.from; shownIndex < view.to && edge(shownIndex + 1) <= place; ) shownIndex += 1;
      const x = percent(view.dates ? place : middle(shownIndex)), date = day(shownIndex);
      const roomy = parseFloat(x) >= free && parseFloat(x) <= 81;
      label.toggleAttribute("hidden", !roomy);
      if (!roomy) return;
      label.setAttribute("x", x);
      label.textContent = date === last ? data.shas[shownIndex].slice(0, 7) : date;
      free = parseFloat(x) + 19;
      last = date;
    });
    point(chart, chart.cursor);
    choose(chart, chart.chosen);
  }

  function ruled(chart, scale, top, height) {
    const { svg } = chart, { at, value } = chart.numbers(), ticks = [], lines = [];
    for (let tick = Math.ceil(scale.low / scale.step) * scale.step; tick <= scale.high; tick += scale.step) {
      const y = top + Math.round(scale.place(tick));
      const text = drawn("text", { x: 0, y: y - 4 });
      text.textContent = compact(tick, scale.step);
      ticks.push(text);
      lines.push(drawn("line", { x2: "100%", y1: y, y2: y }));
    }
    svg.querySelector(".ticks").replaceChildren(...ticks);
    svg.querySelector(".grid").replaceChildren(...lines, ...svg.querySelectorAll(".grid .floor"));
    for (const mark of svg.querySelectorAll(".mark")) {
      const index = Number(mark.dataset.at), use = mark.querySelector("use"), place = at.indexOf(index);
      use.setAttribute("x", percent(middle(index)));
      mark.toggleAttribute("hidden", !inside(index));
      if (place < 0) continue;
      const y = top + scale.place(value[place]) + (mark.classList.contains("improvement") ? 13 : -13);
      use.setAttribute("y", Math.min(Math.max(y, top), top + height).toFixed(1));
    }
    chart.down = (place) => top + scale.place(value[place]);
  }

  function redraw() {
    byId("whole").hidden = view.from === 0 && view.to === count - 1;
    for (const chart of charts) if (chart.svg) draw(chart);
  }
  function zoom(from, to) {
    view.from = Math.max(0, Math.min(from, to));
    view.to = Math.min(count - 1, Math.max(from, to));
    redraw();
  }

  // --- Hover, keys, ranges -----------------------------------------------------------------------------------------------

  function point(chart, place) {
    chart.svg.querySelector(".cursor")?.remove();
    chart.cursor = place;
    const { at } = chart.numbers();
    if (place === null || !inside(at[place])) return;
    const box = drawn("g", { class: "cursor" }), x = percent(middle(at[place]));
    const bottom = chart.svg.height.baseVal.value - 20;
    box.append(drawn("line", { x1: x, x2: x, y1: 18, y2: bottom }));
    if (!chart.down) measure(chart);
    box.append(drawn("circle", { cx: x, cy: chart.down(place), r: 4 }));
    chart.svg.append(box);
  }
  // Where the server's drawing has its values, without drawing it again.
  function measure(chart) {
    const plot = chart.svg.querySelector(".plot.value"), { value } = chart.numbers();
    const scale = scaleOf(value, plot.height.baseVal.value);
    chart.down = (place) => plot.y.baseVal.value + scale.place(value[place]);
  }

  function l1(chart, place) {
    const { value, ll, ram } = chart.numbers(), [one, two, three] = chart.weights || [0];
    return one ? (value[place] - two * ll[place] - three * ram[place]) / one : null;
  }
  function figures(chart, place) {
    const { value, ir, ll, ram } = chart.numbers(), first = l1(chart, place);
    const amount = (name, numbers) => chart.rough(name) + grouped(numbers[place]);
    const rows = [[chart.named, amount("value", value)]];
    if (chart.named !== "Instructions") rows.push(["Ir", amount("ir", ir)]);
    if (first !== null) rows.push(["L1 hits", (["value", "ll", "ram"].map(chart.rough).find(Boolean) || "") + grouped(first)]);
    return [...rows, ["LL hits", amount("ll", ll)], ["RAM hits", amount("ram", ram)]];
  }
  function say(chart, place, x, y) {
    const tip = byId("tip");
    if (place === null) { tip.hidden = true; return; }
    const { at, key, value, taken } = chart.numbers(), index = at[place];
    const list = element("dl", {});
    for (const [name, number] of figures(chart, place)) list.append(element("dt", {}, name), element("dd", {}, number));
    if (place > 0) {
      const alike = key[place] === key[place - 1];
      list.append(element("dt", {}, "Since the last reading"), element("dd", {}, alike ? change(value[place - 1], value[place]) : "other key"));
      const between = index - at[place - 1] - 1, equal = alike && value[place - 1] === value[place];
      if (between) list.append(element("dt", {}, "Not measured before it"), element("dd", {}, `${between}${equal ? ", between equal ends" : ""}`));
    }
    const parts = [element("p", { class: "by" }, element("code", {}, data.shas[index]), ` · ${moment(index)}`), list];
    if (taken.includes(place)) parts.push(element("p", { class: "by" }, "Not measured: another commit read the same"));
    if (authors[index]) parts.unshift(element("p", { class: "by author" }, authors[index]));
    if (data.subjects[index]) parts.unshift(element("p", { class: "subject" }, data.subjects[index]));
    for (const [release, name] of data.releases) if (release === index) parts.push(element("p", { class: "by" }, `Release ${name}`));
    tip.replaceChildren(...parts);
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), room = 14;
    const across = x + room + box.width > innerWidth - 8 ? x - room - box.width : x + room;
    tip.style.left = `${Math.max(8, Math.min(across, innerWidth - box.width - 8))}px`;
    tip.style.top = `${Math.max(8, Math.min(y + room, innerHeight - box.height - 8))}px`;
  }
  function nearest(chart, clientX) {
    const box = chart.svg.getBoundingClientRect(), { at } = chart.numbers();
    const x = left() + width() * (clientX - box.left) / box.width;
    let best = null;
    at.forEach((index, place) => {
      if (inside(index) && (best === null || Math.abs(middle(index) - x) < Math.abs(middle(at[best]) - x))) best = place;
    });
    return best;
  }
  function tipAtCursor(chart) {
    const box = chart.svg.getBoundingClientRect(), { at } = chart.numbers();
    say(chart, chart.cursor, box.left + box.width * parseFloat(percent(middle(at[chart.cursor]))) / 100, box.top + 40);
  }

  function choose(chart, places) {
    chart.chosen = places;
    chart.svg.querySelector(".chosen")?.remove();
    chart.article.querySelector(".compare")?.remove();
    if (!places.length) return;
    const { at, key } = chart.numbers();
    const [a, b] = [Math.min(...places), Math.max(...places)];
    const from = edge(Math.max(at[a], view.from)), to = edge(Math.min(at[b], view.to) + 1);
    if (to > from) {
      const mark = drawn("g", { class: "chosen" });
      mark.append(drawn("rect", { x: percent(from), width: (100 * (to - from) / width()).toFixed(3) + "%", y: 18, height: chart.svg.height.baseVal.value - 38 }));
      chart.svg.prepend(mark);
    }
    if (a === b) return;
    const between = at[b] - at[a], names = [[chart.named, "value"], ["Ir", "ir"], ["LL hits", "ll"], ["RAM hits", "ram"]];
    const table = element("table", {}), list = element("ul", { class: "suspects" });
    for (const [name, quantity] of chart.named !== "Instructions" ? names : names.filter(([, quantity]) => quantity !== "ir")) {
      const numbers = chart.numbers()[quantity], amount = (place) => chart.rough(quantity) + grouped(numbers[place]);
      table.append(element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "n" }, amount(a)),
        element("td", {}, "→"), element("td", { class: "n" }, amount(b)), element("td", { class: "n" }, key[a] === key[b] ? change(numbers[a], numbers[b]) : "")));
    }
    for (let index = at[b]; index > Math.max(at[a], at[b] - 8); index -= 1)
      list.append(element("li", {}, element("code", {}, data.shas[index]), ` ${data.subjects[index]} `, element("span", { class: "by" }, authors[index])));
    if (between > 8) list.append(element("li", { class: "by" }, `and ${between - 8} more`));
    const inner = element("button", { type: "button" }, "Zoom to these"), clear = element("button", { type: "button" }, "Clear");
    inner.addEventListener("click", () => zoom(at[a], at[b]));
    clear.addEventListener("click", () => { choose(chart, []); remember(chart); });
    const summary = `${day(at[a])} to ${day(at[b])}: ${between} commit${between === 1 ? "" : "s"}${key[a] === key[b] ? "" : ", measured under different keys: not comparable"}`;
    chart.article.querySelector(".figures").before(element("div", { class: "compare" }, element("p", {}, element("b", {}, summary)), table, list,
      element("p", {}, element("code", {}, `cg-bench diff ${data.shas[at[a]]} ${data.shas[at[b]]}`)), inner, clear));
  }

  function bring(chart) {
    const { svg } = chart;
    let start = null;
    svg.classList.add("live");
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-roledescription", "chart");
    svg.addEventListener("pointermove", (event) => {
      const place = nearest(chart, event.clientX);
      point(chart, place);
      say(chart, place, event.clientX, event.clientY);
      if (start !== null && start.place !== place && Math.abs(event.clientX - start.x) > 4) choose(chart, [start.place, place]);
    });
    svg.addEventListener("pointerdown", (event) => {
      if (event.button === 0) start = { place: nearest(chart, event.clientX), x: event.clientX };
    });
    svg.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const place = nearest(chart, event.clientX), still = Math.abs(event.clientX - start.x) <= 4;
      if (still && place !== null) choose(chart, chart.chosen.length === 1 ? [chart.chosen[0], place] : [place]);
      start = null;
      remember(chart);
      if (place !== null) { point(chart, place); say(chart, place, event.clientX, event.clientY); }
    });
    // A finger leaves as soon as it is lifted: what it pointed at stays until the next touch elsewhere.
    svg.addEventListener("pointerleave", (event) => {
      start = null;
      if (event.pointerType !== "touch") { point(chart, null); say(chart, null); }
    });
    addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" && !svg.contains(event.target)) { point(chart, null); byId("tip").hidden = true; }
    }, { capture: true, passive: true });
    svg.addEventListener("blur", () => { point(chart, null); say(chart, null); });
    svg.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { at } = chart.numbers(), seen = [...at.keys()].filter((place) => inside(at[place]));
      const now = seen.indexOf(chart.cursor), last = seen.length - 1;
      const moves = { ArrowLeft: now < 0 ? last : Math.max(0, now - 1), ArrowRight: now < 0 ? 0 : Math.min(last, now + 1), Home: 0, End: last };
      if (event.key in moves && last >= 0) { point(chart, seen[moves[event.key]]); tipAtCursor(chart); }
      else if (event.key === "Enter" && chart.cursor !== null) { choose(chart, chart.chosen.length === 1 ? [chart.chosen[0], chart.cursor] : [chart.cursor]); remember(chart); }
      else if (event.key === "Escape") { choose(chart, []); point(chart, null); say(chart, null); remember(chart); }
      else if (event.key === "+" || event.key === "-") {
        const centre = chart.cursor === null ? (view.from + view.to) / 2 : at[chart.cursor];
        const half = Math.max(1, (view.to - view.from) / (event.key === "+" ? 4 : 1));
        zoom(Math.round(centre - half), Math.round(centre + half));
      } else return;
      event.preventDefault();
    });
  }

  // --- Filter and links --------------------------------------------------------------------------------------------------

  function sift() {
    const parts = byId("filter").value.toLowerCase().split(/\s+/), state = byId("show").value;
    let shown = 0;
    for (const chart of charts) {
      const fits = parts.every((part) => chart.id.toLowerCase().includes(part)) && (!state || chart.states.includes(state));
      chart.article.hidden = chart.line.hidden = !fits;
      shown += fits;
    }
    byId("shown").textContent = shown < charts.length ? `${shown} of ${charts.length}` : "";
    for (const tile of document.querySelectorAll(".tile")) tile.setAttribute("aria-pressed", String(tile.dataset.show === state));
  }
  // The address always leads back to what is on the screen: #anchor&from=…&to=…&filter=…&show=…&across=dates
  function remember(chart) {
    const parts = new URLSearchParams(), anchor = chart ? chart.anchor : location.hash.slice(1).split("&")[0];
    if (chart && chart.chosen.length === 2) {
      const { at } = chart.numbers(), places = [...chart.chosen].sort((a, b) => a - b);
      parts.set("from", data.shas[at[places[0]]]);
      parts.set("to", data.shas[at[places[1]]]);
    }
    if (byId("filter").value) parts.set("filter", byId("filter").value);
    if (byId("show").value) parts.set("show", byId("show").value);
    if (view.dates) parts.set("across", "dates");
    const rest = parts.toString(), name = anchor.includes("=") ? "" : anchor;
    history.replaceState(null, "", `#${name}${rest && "&" + rest}`);
  }
  function follow() {
    const [anchor, ...rest] = location.hash.slice(1).split("&"), parts = new URLSearchParams(rest.join("&"));
    if (rest.length) {
      byId("filter").value = parts.get("filter") || "";
      const option = [...byId("show").options].find(({ value }) => value === parts.get("show"));
      byId("show").value = option ? option.value : "";
      view.dates = parts.get("across") === "dates";
      byId("across").value = view.dates ? "dates" : "commits";
      if (view.dates) redraw();
    }
    const chart = charts.find((item) => item.anchor === anchor);
    if (!chart) { sift(); return; }
    sift();
    if (chart.article.hidden) { byId("filter").value = byId("show").value = ""; sift(); }
    if (chart.svg && parts.has("from")) {
      const { at } = chart.numbers();
      const places = ["from", "to"].map((name) => at.indexOf(data.shas.indexOf(parts.get(name))));
      if (places.every((place) => place >= 0)) choose(chart, places);
    }
    chart.article.scrollIntoView();
  }

  byId("filter").addEventListener("input", () => { sift(); remember(); });
  byId("show").addEventListener("change", () => { sift(); remember(); });
  byId("across").addEventListener("change", () => { view.dates = byId("across").value === "dates"; redraw(); remember(); });
  byId("whole").addEventListener("click", () => zoom(0, count - 1));
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  for (const tile of document.querySelectorAll(".tile")) {
    const press = () => { byId("show").value = byId("show").value === tile.dataset.show ? "" : tile.dataset.show; sift(); remember(); };
    tile.setAttribute("role", "button");
    tile.setAttribute("tabindex", "0");
    tile.addEventListener("click", press);
    tile.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(); } });
  }
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT)$/.test(document.activeElement.tagName)) { event.preventDefault(); byId("filter").focus(); }
  });
  addEventListener("hashchange", follow);
  for (const hidden of document.querySelectorAll(".scripted")) hidden.hidden = false;
  if (data.coarse > 1) redraw(); // What was left out of the drawings for the size of the page is here.
  if (location.hash) follow(); else sift();
})();
