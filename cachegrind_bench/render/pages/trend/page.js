(async () => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const packed = atob(byId("data").textContent), bytes = new Uint8Array(packed.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = packed.charCodeAt(at);
  const data = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  const count = data.shas.length;
  for (const hidden of document.querySelectorAll(".scripted")) hidden.hidden = false;

  // Numbers are differences from the one before: see data.py.
  function unpack(text) {
    let total = 0;
    return JSON.parse(`[${text}]`).map((step) => total += step);
  }

  const minutes = unpack(data.minutes), authors = unpack(data.author).map((number) => data.authors[number]);
  const releases = new Map(data.releases), view = { from: 0, to: count - 1, dates: false };
  const lines = document.querySelectorAll("[data-row]");
  const charts = data.rows.map((row, number) => {
    const article = byId(row.anchor), { id, states } = article.dataset;
    return { ...row, article, id, states: states.split(" "), svg: article.querySelector("svg.chart"), line: lines[number], cursor: null, chosen: [] };
  });
  const drawings = new Map(charts.filter(({ svg }) => svg).map((chart) => [chart.svg, chart]));

  // --- Numbers and words -------------------------------------------------------------------------------------------------

  // Read when they are first needed.
  function numbersOf(chart) {
    if (chart.numbers) return chart.numbers;
    const numbers = Object.fromEntries(["at", "failed", "taken", "key", "value", "ir", "ll", "ram"].map((name) => [name, unpack(chart[name])]));
    const [one, two, three] = chart.weights || [];
    numbers.l1 = numbers.value.map((value, place) => (value - two * numbers.ll[place] - three * numbers.ram[place]) / one);
    return chart.numbers = numbers;
  }
  const quantities = ({ named, weights, caches }) => [["value", named], ["ir", "Ir"], ["l1", "L1 hits"], ["ll", "LL hits"], ["ram", "RAM hits"]]
    .filter(([name]) => name === "value" || (name === "ir" ? named !== "Instructions" : caches && (name !== "l1" || weights)));
  const grouped = (number) => number.toLocaleString("en-US");
  const moment = (index) => new Date(minutes[index] * 60000).toISOString().slice(0, 16).replace("T", " ") + " UTC";
  const day = (index) => moment(index).slice(0, 10);
  function change(before, after) {
    if (before === after) return "0 %";
    if (before < 100) return "";  // a percentage of a few says nothing
    const percent = Number((100 * (after - before) / before).toPrecision(3));
    return `${percent > 0 ? "+" : ""}${percent} %`;
  }
  // As many digits as distinguish values that are a step apart; without one, three.
  function compact(number, step = Math.max(1, 10 ** (Math.floor(Math.log10(number)) - 2))) {
    const [factor, unit] = [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]].find(([least]) => number >= least) || [1, ""];
    return (number / factor).toFixed(Math.max(0, Math.ceil(Math.log10(factor / step)))) + unit;
  }
  const made = (space) => (name, attributes, ...children) => {
    const node = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const element = made("http://www.w3.org/1999/xhtml"), drawn = made("http://www.w3.org/2000/svg");

  // --- Charts ------------------------------------------------------------------------------------------------------------

  const TOP = 30, MAIN = 172, SMALL = 26, GAP = 22, AIR = 13, MOST_DOTS = 40, LONGEST_LABEL = 14;  // pixels, readings, letters

  // Columns are as wide as one another or, by date, as the time until the next commit. Their edges and readings are in percent of the width.
  const whole = minutes[count - 1] - minutes[0];
  const dated = [...minutes.map((minute, index) => whole ? (minute - minutes[0]) * (count - 1) / whole : index), count];
  const column = (index) => view.dates ? dated[index] : index;
  const across = (x) => 100 * (x - column(view.from)) / Math.max(column(view.to + 1) - column(view.from), 1e-6);
  const edge = (index) => across(column(index));
  const middle = (index) => across(column(index) + (view.dates ? 0 : 0.5));
  const inside = (index) => index >= view.from && index <= view.to;

  // Values fill most of the height, unless they differ by less than a fiftieth of their level: that looks as flat as it is.
  function scaleOf(values, height) {
    const lowest = Math.min(...values), highest = Math.max(...values), span = Math.max(highest - lowest, highest / 50, 4) * 7 / 6;
    const low = Math.max(0, (lowest + highest - span) / 2), high = (lowest + highest + span) / 2, power = 10 ** Math.floor(Math.log10((high - low) / 4));
    const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((size) => Math.floor((high - low) / size) < 4));
    return { low, high, step, down: (value) => height * (high - value) / (high - low) };
  }

  function draw(chart) {
    const { svg } = chart, numbers = numbersOf(chart), { at, key, failed } = numbers, taken = new Set(numbers.taken);
    const held = at.findLastIndex((index) => index < view.from);
    const shown = [...at.keys()].filter((place) => inside(at[place]) || place === held);
    const add = (...parts) => svg.appendChild(drawn(...parts));
    const level = (y) => add("line", { class: "level", x2: "100%", y1: y, y2: y });
    svg.replaceChildren();
    rule(chart, "release", [...releases].map(([index, name]) => [index, name, `release ${name} of ${day(index)}`]), 11);
    rule(chart, "key", [...at.keys()].filter((place) => place && key[place] !== key[place - 1]).map((place) => [at[place], "other key", `measured differently from here on: comparability key ${data.keys[key[place]]}`]), TOP + MAIN - 20);
    let top = TOP;
    for (const [name, title] of quantities(chart).filter(([name]) => name !== "l1")) {
      const main = name === "value", height = main ? MAIN : SMALL, scale = scaleOf(shown.map((place) => numbers[name][place]), height);
      const x = (place) => middle(at[place]).toFixed(3), y = (place) => scale.down(numbers[name][place]).toFixed(1);
      level(top + height);
      const paths = { line: shown.map((place, number) => (number ? `H${x(place)}` : "") + (number && key[place] === key[place - 1] ? `V${y(place)}` : `M${x(place)} ${y(place)}`)) };
      if (shown.length) paths.line.push(`H${middle(at[shown.at(-1)] + 1)}`);
      if (main) {
        if (shown.length <= MOST_DOTS) paths.dots = shown.map((place) => `M${x(place)} ${y(place)}h0`);
        // Where some commits have no reading of their own, bars below are at those that were measured, and at those taken over.
        const bars = (places) => places.map((place) => `M${edge(at[place])} ${height}H${edge(at[place] + 1)}`);
        if (taken.size || at.length <= at.at(-1) - at[0])
          Object.assign(paths, { bar: bars(shown.filter((place) => !taken.has(place))), "bar taken": bars(shown.filter((place) => taken.has(place))) });
        for (let tick = Math.ceil(scale.low / scale.step) * scale.step; tick <= scale.high; tick += scale.step) {
          const y = top + Math.round(scale.down(tick));
          level(y);
          add("text", { class: "tick", y: y - 4 }, compact(tick, scale.step));
        }
        chart.down = (place) => TOP + scale.down(numbers.value[place]);
      } else add("text", { y: top - 5 }, `${title} ${compact(numbers[name].at(-1))}`);
      add("svg", { class: `plot ${name}`, y: top, width: "100%", height, viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none" },
        ...Object.entries(paths).map(([look, path]) => drawn("path", { class: look, d: path.join("") })));
      top += height + GAP;
    }
    dates(svg, top - 3);
    const crosses = failed.filter(inside);
    add("text", { class: "crosses", x: crosses.map((index) => `${middle(index)}%`).join(" "), y: TOP + MAIN - 3 }, drawn("title", {}, "failed"), "×".repeat(crosses.length));
    for (const [index, kind, look, title] of chart.marks.filter(([index]) => inside(index))) {
      const y = chart.down(at.indexOf(index)) + (kind === "improvement" ? AIR : -AIR);
      add("g", { class: `mark ${kind} ${look}` }, drawn("title", {}, title), drawn("use", { href: `#s-${kind}`, x: `${middle(index)}%`, y: Math.min(Math.max(y, TOP), TOP + MAIN) }));
    }
    choose(chart, chart.chosen);
    if (chart === pointed) point(chart, chart.cursor);
  }

  // Lines from top to bottom at commits, the newest of those that crowd, each labelled where there is room.
  function rule({ svg }, look, items, y) {
    const pixel = 100 / svg.getBoundingClientRect().width;
    let free = 100, last = Infinity;
    for (const [index, text, title] of items.filter(([index]) => inside(index)).reverse()) {
      const at = middle(index), x = `${at}%`, label = text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text;
      const room = (7 * label.length + 8) * pixel, turned = at + room > 100, start = turned ? at - room : at;
      if (last - at < 4 * pixel) continue;
      const fits = start >= 0 && start + room <= free;
      svg.append(drawn("g", { class: `rule ${look}` }, drawn("title", {}, title), drawn("line", { x1: x, x2: x, y1: 6, y2: svg.height.baseVal.value - 20 }),
        ...fits ? [drawn("text", { class: turned ? "turned" : "", x, y }, label)] : []));
      [free, last] = [fits ? start : free, at];
    }
  }
  // At most four labels, if there is room. A label is the day, or the commit if the label before has that day.
  function dates(svg, y) {
    const room = 7000 / svg.getBoundingClientRect().width;
    let free = 0, last = "";
    for (const quarter of [0, 25, 50, 75]) {
      let index = view.from;
      while (index < view.to && edge(index + 1) <= quarter) index += 1;
      const at = view.dates ? quarter : middle(index), date = day(index);
      if (at < free || at + room > 100) continue;
      svg.append(drawn("text", { class: "date", x: `${at}%`, y }, date === last ? data.shas[index].slice(0, 7) : date));
      [free, last] = [at + room, date];
    }
  }

  // Only what is on the screen, or nearly, is drawn: pages may have thousands of charts.
  const near = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const chart = drawings.get(target);
      if (isIntersecting) { near.add(chart); draw(chart); } else near.delete(chart);
    }
  }, { rootMargin: "600px" });
  function redraw() {
    byId("whole").hidden = view.from === 0 && view.to === count - 1;
    near.forEach(draw);
  }
  function zoom(from, to) {
    view.from = Math.max(0, Math.min(from, to));
    view.to = Math.min(count - 1, Math.max(from, to));
    redraw();
  }

  // --- Hover, keys, ranges -----------------------------------------------------------------------------------------------

  let pointed = null, start = null;  // the chart with the cursor, and where dragging began

  // Show a reading next to the pointer, or next to the line at it; of none, nothing.
  function point(chart, place, clientX, clientY) {
    const { svg } = chart, { at, key, value, taken } = numbersOf(chart), tip = byId("tip"), index = at[place], x = `${middle(index)}%`;
    svg.querySelector(".cursor")?.remove();
    chart.cursor = place;
    pointed = place === null ? null : chart;
    tip.hidden = place === null || !inside(index);
    if (tip.hidden) return;
    if (!chart.down) draw(chart);
    svg.append(drawn("g", { class: "cursor" }, drawn("line", { x1: x, x2: x, y1: 18, y2: svg.height.baseVal.value - 20 }), drawn("circle", { cx: x, cy: chart.down(place), r: 4 })));
    const by = (...children) => element("p", { class: "by" }, ...children), list = element("dl", {});
    const row = (name, text) => list.append(element("dt", {}, name), element("dd", {}, text));
    for (const [name, title] of quantities(chart)) row(title, grouped(numbersOf(chart)[name][place]));
    if (place > 0) {
      const alike = key[place] === key[place - 1], between = index - at[place - 1] - 1;
      row("Since the last reading", alike ? change(value[place - 1], value[place]) : "other key");
      if (between) row("Not measured before it", `${between}${alike && value[place - 1] === value[place] ? ", between equal ends" : ""}`);
    }
    tip.replaceChildren(element("p", { class: "subject" }, data.subjects[index]), by(authors[index]), by(element("code", {}, data.shas[index]), ` · ${moment(index)}`), list);
    if (taken.includes(place)) tip.append(by("Not measured: another commit read the same"));
    if (releases.has(index)) tip.append(by(`Release ${releases.get(index)}`));
    const box = tip.getBoundingClientRect(), around = svg.getBoundingClientRect(), room = 14;
    const right = clientX ?? around.left + around.width * middle(index) / 100, down = (clientY ?? around.top + 40) + room;
    const beside = right + room + box.width > innerWidth - 8 ? right - room - box.width : right + room;
    tip.style.left = `${Math.max(8, Math.min(beside, innerWidth - box.width - 8))}px`;
    tip.style.top = `${Math.max(8, Math.min(down, innerHeight - box.height - 8))}px`;
  }
  function nearest(chart, clientX) {
    const box = chart.svg.getBoundingClientRect(), { at } = numbersOf(chart);
    const distance = (place) => Math.abs(middle(at[place]) - 100 * (clientX - box.left) / box.width);
    return [...at.keys()].filter((place) => inside(at[place])).reduce((best, place) => best === null || distance(place) < distance(best) ? place : best, null);
  }

  function choose(chart, places) {
    const { svg, article } = chart, { at, key, ...numbers } = numbersOf(chart), a = Math.min(...places), b = Math.max(...places);
    chart.chosen = places;
    svg.querySelector(".chosen")?.remove();
    article.querySelector(".compare")?.remove();
    if (!places.length) return;
    const from = edge(Math.max(at[a], view.from)), to = edge(Math.min(at[b], view.to) + 1);
    if (to > from) svg.prepend(drawn("rect", { class: "chosen", x: `${from}%`, width: `${to - from}%`, y: 18, height: svg.height.baseVal.value - 38 }));
    if (a === b) return;
    const between = at[b] - at[a], table = element("table", {}), list = element("ul", { class: "suspects" });
    for (const [name, title] of quantities(chart))
      table.append(element("tr", {}, element("th", { scope: "row" }, title), element("td", { class: "n" }, grouped(numbers[name][a])), element("td", {}, "→"),
        element("td", { class: "n" }, grouped(numbers[name][b])), element("td", { class: "n" }, key[a] === key[b] ? change(numbers[name][a], numbers[name][b]) : "")));
    for (let index = at[b]; index > Math.max(at[a], at[b] - 8); index -= 1)
      list.append(element("li", {}, element("code", {}, data.shas[index]), ` ${data.subjects[index]} `, element("span", { class: "by" }, authors[index])));
    if (between > 8) list.append(element("li", { class: "by" }, `and ${between - 8} more`));
    const inner = element("button", { type: "button" }, "Zoom to these"), clear = element("button", { type: "button" }, "Clear");
    inner.addEventListener("click", () => zoom(at[a], at[b]));
    clear.addEventListener("click", () => { choose(chart, []); remember(chart); });
    const summary = `${day(at[a])} to ${day(at[b])}: ${between} commit${between === 1 ? "" : "s"}${key[a] === key[b] ? "" : ", measured under different keys: not comparable"}`;
    article.querySelector(".figures").before(element("div", { class: "compare" }, element("p", {}, element("b", {}, summary)), table, list,
      element("p", {}, element("code", {}, `cg-bench diff ${data.shas[at[a]]} ${data.shas[at[b]]}`)), inner, clear));
  }
  function pick(chart, place) {
    choose(chart, chart.chosen.length === 1 ? [chart.chosen[0], place] : [place]);
    remember(chart);
  }

  const chartAt = ({ target }) => drawings.get(target.closest?.("svg.chart"));
  const leave = (chart) => { if (chart) point(chart, null); };
  addEventListener("pointermove", (event) => {
    const chart = chartAt(event);
    if (!chart) return;
    const place = nearest(chart, event.clientX);
    point(chart, place, event.clientX, event.clientY);
    if (start?.chart === chart && start.place !== place && Math.abs(event.clientX - start.x) > 4) choose(chart, [start.place, place]);
  });
  addEventListener("pointerdown", (event) => {
    const chart = chartAt(event);
    if (chart && event.button === 0) start = { chart, place: nearest(chart, event.clientX), x: event.clientX };
    if (chart !== pointed && event.pointerType === "touch") leave(pointed);
  });
  addEventListener("pointerup", (event) => {
    const chart = chartAt(event), place = chart && nearest(chart, event.clientX);
    if (chart && start?.chart === chart && place !== null) {
      if (Math.abs(event.clientX - start.x) <= 4) pick(chart, place); else remember(chart);
      point(chart, place, event.clientX, event.clientY);
    }
    start = null;
  });
  // A finger leaves as soon as it is lifted: what it pointed at stays until the next touch elsewhere.
  addEventListener("pointerout", (event) => {
    const chart = chartAt(event);
    if (!chart || chart.svg.contains(event.relatedTarget)) return;
    start = null;
    if (event.pointerType !== "touch") leave(chart);
  });
  addEventListener("focusout", (event) => leave(chartAt(event)));
  addEventListener("keydown", (event) => {
    const chart = chartAt(event);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && !/^(INPUT|SELECT)$/.test(event.target.tagName)) byId("filter").focus();
    else if (!chart) return;
    else if (event.key === "Enter" && chart.cursor !== null) pick(chart, chart.cursor);
    else if (event.key === "Escape") { choose(chart, []); leave(chart); remember(chart); }
    else if (event.key === "+" || event.key === "-") {
      const centre = chart.cursor === null ? (view.from + view.to) / 2 : numbersOf(chart).at[chart.cursor];
      const half = Math.max(1, (view.to - view.from) / (event.key === "+" ? 4 : 1));
      zoom(Math.round(centre - half), Math.round(centre + half));
    } else {
      const { at } = numbersOf(chart), seen = [...at.keys()].filter((place) => inside(at[place]));
      const now = seen.indexOf(chart.cursor), last = seen.length - 1;
      const moves = { ArrowLeft: now < 0 ? last : Math.max(0, now - 1), ArrowRight: Math.min(last, now + 1), Home: 0, End: last };
      if (!(event.key in moves) || last < 0) return;
      point(chart, seen[moves[event.key]]);
    }
    event.preventDefault();
  });

  // --- Filter and links --------------------------------------------------------------------------------------------------

  const fields = ["filter", "show", "across"].map(byId), [filter, show, axis] = fields;
  function sift() {
    const parts = filter.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const chart of charts) {
      const fits = parts.every((part) => chart.id.toLowerCase().includes(part)) && (!show.value || chart.states.includes(show.value));
      chart.article.hidden = chart.line.hidden = !fits;
      shown += fits;
    }
    byId("shown").textContent = shown < charts.length ? `${shown} of ${charts.length}` : "";
    for (const tile of document.querySelectorAll(".tile")) tile.setAttribute("aria-pressed", String(tile.dataset.show === show.value));
    if (view.dates !== (axis.value === "dates")) { view.dates = !view.dates; redraw(); }
  }
  // The address always leads back to what is on the screen: #anchor&from=…&to=…&filter=…&show=…&across=dates
  function remember(chart) {
    const parts = new URLSearchParams(), anchor = chart ? chart.anchor : location.hash.slice(1).split("&")[0];
    if (chart?.chosen.length === 2)
      for (const [name, nth] of [["from", Math.min], ["to", Math.max]]) parts.set(name, data.shas[numbersOf(chart).at[nth(...chart.chosen)]]);
    for (const field of fields) if (field.value) parts.set(field.id, field.value);
    const rest = parts.toString(), name = anchor.includes("=") ? "" : anchor;
    history.replaceState(null, "", `#${name}${rest && "&" + rest}`);
  }
  function follow() {
    const [anchor, ...rest] = location.hash.slice(1).split("&"), parts = new URLSearchParams(rest.join("&"));
    if (rest.length) for (const field of fields) field.value = parts.get(field.id) || "";
    sift();
    const chart = charts.find((item) => item.anchor === anchor);
    if (!chart) return;
    if (chart.article.hidden) { filter.value = show.value = ""; sift(); }
    if (chart.svg && parts.has("from")) {
      const places = ["from", "to"].map((name) => numbersOf(chart).at.indexOf(data.shas.indexOf(parts.get(name))));
      if (places.every((place) => place >= 0)) choose(chart, places);
    }
    chart.article.scrollIntoView();
  }

  byId("tools").addEventListener("input", () => { sift(); remember(); });
  byId("whole").addEventListener("click", () => zoom(0, count - 1));
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  for (const tile of document.querySelectorAll(".tile")) {
    const press = () => { show.value = show.value === tile.dataset.show ? "" : tile.dataset.show; sift(); remember(); };
    tile.setAttribute("role", "button");
    tile.setAttribute("tabindex", "0");
    tile.addEventListener("click", press);
    tile.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(); } });
  }
  for (const svg of drawings.keys()) {
    svg.classList.add("live");
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-roledescription", "chart"]]) svg.setAttribute(name, value);
    watcher.observe(svg);
  }
  addEventListener("resize", redraw);
  addEventListener("beforeprint", () => [...drawings.values()].forEach(draw));
  addEventListener("hashchange", follow);
  follow();
})();
