// Draws the flame graph of each section that has one, of one execution or of two.
(() => {
  "use strict";
  const NATIVE = "native code", ROW = 20, NARROWEST = 3, READABLE = 24, MOST = 3000, STRIP = 1 / 8; // pixels, frames at once, part of the width
  const ALL = -1, STEPS = [0.5, 0.1, 0.01]; // parts of the whole change from which on a colour is stronger
  const grouped = new Intl.NumberFormat("en-US").format; // made once: toLocaleString makes one for each number
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
    const frames = [], words = data.functions.map(([name, place]) => `${name} ${place}`.toLowerCase());
    for (let index = 0; index < count; index += 1) {
      const number = data.function[index], parent = frames[data.parent[index]] || null;
      const [name, place, colour] = number >= 0 ? data.functions[number] : number === ALL ? ["all", "", -1]
        : ["…", `${grouped(data.merged[index])} smaller callees`, -1];
      const frame = { index, number, name, place, words: words[number], parent, children: [], colour: colourOf(index, colour) };
      frame.depth = parent ? parent.depth + 1 : 0;
      if (parent) parent.children.push(frame);
      frames.push(frame);
    }
    const arrange = (width) => {
      const next = new Array(count).fill(0);
      for (const frame of frames) {
        frame.width = width[frame.index];
        frame.from = frame.parent ? frame.parent.from + next[frame.parent.index] : 0;
        if (frame.parent) next[frame.parent.index] += frame.width;
      }
    };
    const both = (column, index) => column.map((side) => grouped(side[index])).join(" → ");
    const described = ({ index, number, name, children, isStrip }) => {
      if (isStrip) return `${inclusive.map((side) => grouped(children.reduce((sum, child) => sum + side[child.index], 0))).join(" → ")} instructions`;
      const calls = data.calls[sides - 1][index], change = moved(index);
      const share = isPair ? percent(change, moved(0)) : percent(inclusive[0][index], inclusive[0][0]);
      const parts = [`${both(inclusive, index)} instructions, ${isPair ? `${signed(change)}, ${share} of the change` : share}`];
      if (number >= 0 && name !== NATIVE) {
        parts.push(`itself ${both(data.own, index)}${isPair ? "" : `, ${percent(data.own[0][index], inclusive[0][0])}`}`);
      }
      if (number !== ALL && data.calls.some((side) => side[index])) parts.push(`${both(data.calls, index)} call${calls === 1 ? "" : "s"}`);
      return parts.join(" · ");
    };
    return { frames, widths, arrange, described };
  }

  function drawGraphs(section, graphs) {
    const within = (name) => section.querySelector(`.${name}`);
    const graph = within("graph"), status = within("status"), field = within("search"), whole = within("whole");
    const view = within("view"), kind = within("kind"), known = [];
    let frames, widths, arrange, described; // of the graph that is shown
    let width; // of its frames
    function say(frame) {
      const strong = document.createElement("b");
      strong.textContent = frame.name;
      status.replaceChildren(strong, `${frame.place && ` ${frame.place}`} · ${described(frame)}`);
    }

    // --- Drawing -----------------------------------------------------------------------------------------------------------

    const drawn = new Map(), framesBy = new Map(); // elements by frame, of what can be seen now, and the other way round
    let drawnFor = 0; // a graph of this width
    let zoomed, current, wanted = "", holding = new Set(); // frames that are searched for, or have such below them

    // Callees in a row that are too narrow are one frame, of less than the whole width, so that zooming in shows more of them.
    function strip(parent, children) {
      const { from, depth } = children[0], width = children.reduce((sum, child) => sum + child.width, 0);
      const place = `${grouped(children.length)} narrow frames: zoom in`;
      return { name: "…", place, parent, children, colour: "other strip", depth, from, width, isStrip: true };
    }
    // Return the frames that are at least so wide, and strips of others.
    function seen(across, narrowest) {
      const scale = across / (zoomed.width || 1), list = [], waiting = [zoomed];
      for (let outer = zoomed.parent; outer; outer = outer.parent) list.unshift(outer);
      while (waiting.length && list.length <= MOST) {
        const frame = waiting.pop(), widest = STRIP * zoomed.width;
        if (frame !== zoomed || !frame.isStrip) list.push(frame);
        if (frame.isStrip && frame !== zoomed) continue;
        let run = [], sum = 0;
        const next = [];
        const end = () => {
          if (sum * scale >= 0.5) list.push(run.length === 1 ? run[0] : strip(frame.isStrip ? frame.parent : frame, run));
          [run, sum] = [[], 0];
        };
        for (const child of frame.children) {
          if (child.width * scale >= narrowest) { end(); next.push(child); continue; }
          if (sum + child.width > widest) end();
          run.push(child);
          sum += child.width;
        }
        end();
        waiting.push(...next.reverse());
      }
      return list;
    }
    function made(frame, across) {
      const item = document.createElement("div"), outer = frame.depth < zoomed.depth || frame === zoomed;
      const from = outer ? 0 : (frame.from - zoomed.from) / zoomed.width, width = outer ? 1 : frame.width / zoomed.width;
      const isThin = width * across < READABLE;
      item.className = `frame ${frame.colour}${frame.depth < zoomed.depth ? " outer" : ""}${isThin ? " thin" : ""}`;
      item.style.cssText = `top:${frame.depth * ROW}px;left:${(100 * from).toFixed(4)}%;width:max(1px,${(100 * width).toFixed(4)}%)`;
      item.setAttribute("role", "treeitem");
      item.setAttribute("aria-level", frame.depth + 1);
      item.setAttribute("aria-label", `${frame.name} ${frame.place}`); // the rest is said of the one in focus
      if (!isThin) item.textContent = frame.name;
      item.tabIndex = -1;
      return item;
    }
    function draw() {
      drawnFor = graph.clientWidth;
      const across = drawnFor || 1000, keep = document.activeElement?.parentElement === graph;
      let list = seen(across, NARROWEST);
      for (let narrowest = 2 * NARROWEST; list.length > MOST && narrowest < across; narrowest *= 2) list = seen(across, narrowest);
      drawn.clear();
      framesBy.clear();
      let lowest = 0;
      for (const frame of list) {
        const item = made(frame, across);
        drawn.set(frame, item);
        framesBy.set(item, frame);
        lowest = Math.max(lowest, frame.depth);
      }
      graph.replaceChildren(...drawn.values());
      graph.style.height = `${lowest * ROW + ROW}px`;
      whole.hidden = zoomed === frames[0];
      mark();
      if (!drawn.has(current)) current = zoomed.isStrip ? zoomed.children[0] : zoomed;
      if (!drawn.has(current)) current = zoomed.parent;
      reach(current);
      if (keep) drawn.get(current).focus({ preventScroll: true });
    }
    function reach(frame) {
      drawn.get(frame).tabIndex = 0;
      drawn.get(frame).setAttribute("aria-label", `${frame.name} ${frame.place}, ${described(frame)}`);
    }
    function zoom(frame) {
      zoomed = current = frame;
      draw();
      say(current);
    }
    function move(frame) {
      if (!frame || !drawn.has(frame)) return;
      drawn.get(current).tabIndex = -1;
      current = frame;
      reach(frame);
      drawn.get(frame).focus();
    }
    const callees = (frame) => [...drawn.keys()].filter(({ parent }) => parent === frame).sort((one, other) => one.from - other.from);
    function beside(step) {
      const row = current.parent ? callees(current.parent) : [];
      return row[row.indexOf(current) + step];
    }

    // --- Search ------------------------------------------------------------------------------------------------------------

    const fits = ({ number, name, words }) => number >= 0 && name !== NATIVE && words.includes(wanted);
    const holds = (frame) => (frame.isStrip ? frame.children.some((child) => holding.has(child)) : fits(frame));
    function mark() {
      graph.classList.toggle("searching", wanted !== "");
      for (const [frame, item] of drawn) item.classList.toggle("hit", wanted !== "" && holds(frame));
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
      holding = new Set();
      for (let at = wanted === "" ? -1 : frames.length - 1; at >= 0; at -= 1) {
        const frame = frames[at];
        if (holding.has(frame) || fits(frame)) holding.add(frame).add(frame.parent);
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
      ({ frames, widths, arrange, described } = known[place]);
      width = widths[view ? view.selectedIndex : 0];
      arrange(width);
      for (const remark of section.querySelectorAll("[data-graph]")) remark.hidden = Number(remark.dataset.graph) !== place;
      zoomed = current = frames[0];
      say(current);
    }

    // --- Hands -------------------------------------------------------------------------------------------------------------

    const frameOf = (event) => framesBy.get(event.target.closest?.(".frame"));
    graph.addEventListener("click", (event) => { const frame = frameOf(event); if (frame) zoom(frame); });
    graph.addEventListener("pointerover", (event) => { const frame = frameOf(event); if (frame) say(frame); });
    graph.addEventListener("pointerleave", () => say(current));
    graph.addEventListener("focusin", (event) => { const frame = frameOf(event); if (frame) say(frame); });
    graph.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const turns = {
        ArrowUp: () => move(current.parent), ArrowDown: () => move(callees(current)[0]),
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
