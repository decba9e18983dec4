// Draws the flame graph of each section that has one, of one execution or of two.
(() => {
  "use strict";
  const NATIVE = "native code", ROW = 20, NARROWEST = 0.6; // pixels
  const ALL = -1, STEPS = [0.5, 0.1, 0.01]; // parts of the whole change from which on a colour is stronger
  const grouped = (number) => number.toLocaleString("en-US");
  const signed = (number) => `${number < 0 ? "−" : "+"}${grouped(Math.abs(number))}`;
  const percent = (part, whole) => whole ? `${(100 * part / whole).toFixed(1)} %` : "-";
  const sections = [...document.querySelectorAll(".flame")];

  // --- The frames of one graph -------------------------------------------------------------------------------------------

  function framesOf(data) {
    const count = data.parent.length, sides = data.own.length, isPair = sides === 2;
    // Callers come before their callees: what all of these cost is known when their caller's turn comes from the end.
    const inclusive = data.own.map((own) => [...own]);
    const widths = [...inclusive, ...(isPair ? [data.own[0].map((own, index) => Math.abs(data.own[1][index] - own))] : [])];
    for (let index = count - 1; index > 0; index -= 1)
      for (const column of widths) column[data.parent[index]] += column[index];
    const moved = (index) => inclusive[sides - 1][index] - inclusive[0][index];
    const colourOf = (index, colour) => {
      if (!isPair) return colour < 0 ? "other" : `c${colour}`;
      const level = STEPS.findIndex((step) => Math.abs(moved(index)) >= step * widths[2][0]);
      return level < 0 || !moved(index) ? "same" : `${moved(index) > 0 ? "grew" : "shrank"}${level}`;
    };
    const frames = [];
    for (let index = 0; index < count; index += 1) {
      const number = data.function[index], parent = frames[data.parent[index]] || null;
      const [name, place, colour] = number >= 0 ? data.functions[number] : number === ALL ? ["all", "", -1]
        : ["…", `${grouped(data.merged[index])} smaller callees`, -1];
      const frame = { index, number, name, place, parent, children: [], colour: colourOf(index, colour) };
      frame.depth = parent ? parent.depth + 1 : 0;
      if (parent) parent.children.push(frame);
      frames.push(frame);
    }
    const deepest = frames.reduce((most, { depth }) => Math.max(most, depth), 0);
    const arrange = (width) => {
      const next = new Array(count).fill(0);
      for (const frame of frames) {
        frame.width = width[frame.index];
        frame.from = frame.parent ? frame.parent.from + next[frame.parent.index] : 0;
        if (frame.parent) next[frame.parent.index] += frame.width;
      }
    };
    const both = (column, index) => column.map((side) => grouped(side[index])).join(" → ");
    const described = ({ index, number, name }) => {
      const calls = data.calls[sides - 1][index], change = moved(index);
      const share = isPair ? percent(change, moved(0)) : percent(inclusive[0][index], inclusive[0][0]);
      const parts = [`${both(inclusive, index)} instructions, ${isPair ? `${signed(change)}, ${share} of the change` : share}`];
      if (number >= 0 && name !== NATIVE) {
        parts.push(`itself ${both(data.own, index)}${isPair ? "" : `, ${percent(data.own[0][index], inclusive[0][0])}`}`);
      }
      if (number !== ALL && data.calls.some((side) => side[index])) parts.push(`${both(data.calls, index)} call${calls === 1 ? "" : "s"}`);
      return parts.join(" · ");
    };
    return { frames, widths, deepest, arrange, described };
  }

  function drawGraphs(section, graphs) {
    const within = (name) => section.querySelector(`.${name}`);
    const graph = within("graph"), status = within("status"), field = within("search"), whole = within("whole");
    const view = within("view"), kind = within("kind"), known = [];
    let frames, widths, deepest, arrange, described; // of the graph that is shown
    let width; // of its frames
    function say(frame) {
      const strong = document.createElement("b");
      strong.textContent = frame.name;
      status.replaceChildren(strong, `${frame.place && ` ${frame.place}`} · ${described(frame)}`);
    }

    // --- Drawing -----------------------------------------------------------------------------------------------------------

    const drawn = new Map(); // elements by frame, of what can be seen now
    let drawnFor = 0; // a graph of this width
    let zoomed, current, wanted = "";
    const isOuter = (frame) => frame.depth < zoomed.depth;

    function seen() {
      const across = graph.clientWidth || 1000, scale = across / (zoomed.width || 1), list = [];
      for (let outer = zoomed.parent; outer; outer = outer.parent) list.unshift([outer, 0, across]);
      const waiting = [zoomed];
      while (waiting.length) {
        const frame = waiting.pop(), wide = frame.width * scale;
        if (wide < NARROWEST && frame !== zoomed) continue;
        list.push([frame, (frame.from - zoomed.from) * scale, wide]);
        for (let at = frame.children.length - 1; at >= 0; at -= 1) waiting.push(frame.children[at]);
      }
      return [list, across];
    }
    function made(frame) {
      const item = document.createElement("div");
      item.className = `frame ${frame.colour}`;
      item.setAttribute("role", "treeitem");
      item.setAttribute("aria-level", frame.depth + 1);
      item.setAttribute("aria-label", `${frame.name} ${frame.place}, ${described(frame)}`);
      item.dataset.index = frame.index;
      item.style.top = `${frame.depth * ROW}px`;
      return item;
    }
    function draw() {
      drawnFor = graph.clientWidth;
      const [list, most] = seen(), keep = document.activeElement?.parentElement === graph;
      drawn.clear();
      for (const [frame, from, across] of list) {
        const item = made(frame), outer = isOuter(frame);
        item.style.left = `${(100 * from / most).toFixed(4)}%`;
        item.style.width = `${(100 * Math.max(across, 1) / most).toFixed(4)}%`;
        item.classList.toggle("outer", outer);
        item.classList.toggle("thin", across < 24);
        if (across >= 24) item.textContent = frame.name;
        item.tabIndex = -1;
        drawn.set(frame, item);
      }
      graph.replaceChildren(...drawn.values());
      const lowest = list.reduce((most, [frame]) => Math.max(most, frame.depth), 0);
      graph.style.height = `${(zoomed === frames[0] ? deepest : lowest) * ROW + ROW}px`;
      whole.hidden = zoomed === frames[0];
      mark();
      if (!drawn.has(current)) current = zoomed;
      drawn.get(current).tabIndex = 0;
      if (keep) drawn.get(current).focus({ preventScroll: true });
    }
    function zoom(frame) {
      zoomed = current = frame;
      draw();
      say(frame);
    }
    function move(frame) {
      if (!frame || !drawn.has(frame)) return;
      drawn.get(current).tabIndex = -1;
      current = frame;
      drawn.get(frame).tabIndex = 0;
      drawn.get(frame).focus();
    }
    function beside(step) {
      const row = current.parent ? current.parent.children.filter((frame) => drawn.has(frame)) : [];
      return row[row.indexOf(current) + step];
    }

    // --- Search ------------------------------------------------------------------------------------------------------------

    const fits = ({ number, name, place }) => number >= 0 && name !== NATIVE && `${name} ${place}`.toLowerCase().includes(wanted);
    function mark() {
      graph.classList.toggle("searching", wanted !== "");
      for (const [frame, item] of drawn) item.classList.toggle("hit", wanted !== "" && fits(frame));
    }
    function search() {
      wanted = field.value.trim().toLowerCase();
      let sum = 0, hits = 0;
      const inside = new Set(); // frames below one that fits: what they cost is counted already
      for (const frame of frames) {
        const hit = wanted !== "" && fits(frame), below = inside.has(frame.parent);
        if (hit) hits += 1;
        if (hit && !below) sum += frame.width;
        if (hit || below) inside.add(frame);
      }
      within("found").textContent = wanted ? `${grouped(hits)} frame${hits === 1 ? "" : "s"}, ${percent(sum, width[0])}` : "";
      const words = (row) => [...row.querySelectorAll("code")].map((cell) => cell.textContent).join(" ").toLowerCase();
      for (const row of section.querySelectorAll("tr.function")) row.hidden = wanted !== "" && !words(row).includes(wanted);
      mark();
    }

    // Show the graph of the kind that is chosen, as wide as is chosen, from its top.
    function show() {
      const place = kind ? kind.selectedIndex : 0;
      known[place] ??= framesOf(graphs[place]);
      ({ frames, widths, deepest, arrange, described } = known[place]);
      width = widths[view ? view.selectedIndex : 0];
      arrange(width);
      for (const remark of section.querySelectorAll("[data-graph]")) remark.hidden = Number(remark.dataset.graph) !== place;
      zoomed = current = frames[0];
      say(current);
    }

    // --- Hands -------------------------------------------------------------------------------------------------------------

    const frameOf = (event) => frames[event.target.closest?.(".frame")?.dataset.index];
    graph.addEventListener("click", (event) => { const frame = frameOf(event); if (frame) zoom(frame); });
    graph.addEventListener("pointerover", (event) => { const frame = frameOf(event); if (frame) say(frame); });
    graph.addEventListener("pointerleave", () => say(current));
    graph.addEventListener("focusin", (event) => { const frame = frameOf(event); if (frame) say(frame); });
    graph.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const turns = {
        ArrowUp: () => move(current.parent), ArrowDown: () => move(current.children.find((frame) => drawn.has(frame))),
        ArrowLeft: () => move(beside(-1)), ArrowRight: () => move(beside(1)), Home: () => move(zoomed),
        Enter: () => zoom(current), " ": () => zoom(current),
      };
      if (!(event.key in turns)) return;
      turns[event.key]();
      event.preventDefault();
    });
    addEventListener("keydown", (event) => {
      const active = document.activeElement, here = section.contains(active) || (section === sections[0] && !active.closest(".flame"));
      if (!here) return;
      if (event.key === "/" && active !== field) { event.preventDefault(); field.focus(); }
      else if (event.key === "Escape" && active === field && field.value) { field.value = ""; search(); }
      else if (event.key === "Escape") zoom(frames[0]);
    });
    whole.addEventListener("click", () => zoom(frames[0]));
    field.addEventListener("input", search);
    within("tools").addEventListener("submit", (event) => event.preventDefault());
    view?.addEventListener("change", () => { show(); draw(); search(); });
    kind?.addEventListener("change", () => { show(); draw(); search(); });

    new ResizeObserver(() => { if (graph.clientWidth !== drawnFor) draw(); }).observe(graph);
    show();
    draw();
  }

  for (const hidden of document.querySelectorAll(".scripted")) hidden.hidden = false;
  const data = JSON.parse(document.getElementById("data").textContent);
  sections.forEach((section, place) => drawGraphs(section, data[place]));
})();
