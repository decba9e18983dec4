(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const graph = byId("graph"), count = data.parent.length, total = data.inclusive[0];
  const ALL = -1, NATIVE = -2, ROW = 20, NARROWEST = 0.6; // pixels
  const grouped = (number) => number.toLocaleString("en-US");
  const share = (number) => total ? `${(100 * number / total).toFixed(1)} %` : "-";

  // --- The frames --------------------------------------------------------------------------------------------------------

  // Callers come before their callees, so one pass gives every frame its place.
  const frames = [];
  for (let index = 0; index < count; index += 1) {
    const number = data.function[index], parent = frames[data.parent[index]] || null;
    const [name, place, colour] = number >= 0 ? data.functions[number]
      : number === ALL ? ["all", "", null] : number === NATIVE ? ["native code", "not under any Python function", null]
      : ["…", `${grouped(data.merged[index])} smaller callees`, null];
    const frame = { index, number, name, place, colour, parent, children: [], inclusive: data.inclusive[index], next: 0 };
    frame.depth = parent ? parent.depth + 1 : 0;
    frame.from = parent ? parent.from + parent.next : 0;
    if (parent) { parent.next += frame.inclusive; parent.children.push(frame); }
    frames.push(frame);
  }
  const deepest = frames.reduce((most, { depth }) => Math.max(most, depth), 0);

  function described(frame) {
    const { index, number } = frame, own = data.self[index], calls = data.calls[index];
    const parts = [`${grouped(frame.inclusive)} instructions, ${share(frame.inclusive)}`];
    if (number >= 0) parts.push(`itself ${grouped(own)}, ${share(own)}`);
    if (number !== ALL && number !== NATIVE) parts.push(`${grouped(calls)} call${calls === 1 ? "" : "s"}`);
    return parts.join(" · ");
  }
  function say(frame) {
    const strong = document.createElement("b");
    strong.textContent = frame.name;
    byId("status").replaceChildren(strong, `${frame.place && ` ${frame.place}`} · ${described(frame)}`);
  }

  // --- Drawing -----------------------------------------------------------------------------------------------------------

  const drawn = new Map(); // elements by frame, of what can be seen now
  let zoomed = frames[0], current = frames[0], wanted = "";
  const isOuter = (frame) => frame.depth < zoomed.depth;

  function seen() {
    const width = graph.clientWidth || 1000, scale = width / (zoomed.inclusive || 1), list = [];
    for (let outer = zoomed.parent; outer; outer = outer.parent) list.unshift([outer, 0, width]);
    const waiting = [zoomed];
    while (waiting.length) {
      const frame = waiting.pop(), across = frame.inclusive * scale;
      if (across < NARROWEST && frame !== zoomed) continue;
      list.push([frame, (frame.from - zoomed.from) * scale, across]);
      for (let at = frame.children.length - 1; at >= 0; at -= 1) waiting.push(frame.children[at]);
    }
    return [list, width];
  }
  function made(frame) {
    const item = document.createElement("div");
    item.className = `frame ${frame.colour === null ? "other" : `c${frame.colour}`}`;
    item.setAttribute("role", "treeitem");
    item.setAttribute("aria-level", frame.depth + 1);
    item.setAttribute("aria-label", `${frame.name} ${frame.place}, ${described(frame)}`);
    item.dataset.index = frame.index;
    item.style.top = `${frame.depth * ROW}px`;
    return item;
  }
  function draw() {
    const [list, width] = seen(), keep = document.activeElement?.parentElement === graph;
    drawn.clear();
    for (const [frame, from, across] of list) {
      const item = made(frame), outer = isOuter(frame);
      item.style.left = `${(100 * from / width).toFixed(4)}%`;
      item.style.width = `${(100 * Math.max(across, 1) / width).toFixed(4)}%`;
      item.classList.toggle("outer", outer);
      item.classList.toggle("thin", across < 24);
      if (across >= 24) item.textContent = frame.name;
      item.tabIndex = -1;
      drawn.set(frame, item);
    }
    graph.replaceChildren(...drawn.values());
    const lowest = list.reduce((most, [frame]) => Math.max(most, frame.depth), 0);
    graph.style.height = `${(zoomed === frames[0] ? deepest : lowest) * ROW + ROW}px`;
    byId("whole").hidden = zoomed === frames[0];
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

  const fits = ({ number, name, place }) => number >= 0 && `${name} ${place}`.toLowerCase().includes(wanted);
  function mark() {
    graph.classList.toggle("searching", wanted !== "");
    for (const [frame, item] of drawn) item.classList.toggle("hit", wanted !== "" && fits(frame));
  }
  function search() {
    wanted = byId("search").value.trim().toLowerCase();
    let sum = 0, hits = 0;
    const inside = new Set(); // frames below one that fits: what they cost is counted already
    for (const frame of frames) {
      const hit = wanted !== "" && fits(frame), below = inside.has(frame.parent);
      if (hit) hits += 1;
      if (hit && !below) sum += frame.inclusive;
      if (hit || below) inside.add(frame);
    }
    byId("found").textContent = wanted ? `${grouped(hits)} frame${hits === 1 ? "" : "s"}, ${share(sum)}` : "";
    for (const row of document.querySelectorAll("tr.function")) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    mark();
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
    if (event.key === "/" && document.activeElement !== byId("search")) { event.preventDefault(); byId("search").focus(); }
    else if (event.key === "Escape" && document.activeElement === byId("search") && byId("search").value) { byId("search").value = ""; search(); }
    else if (event.key === "Escape") zoom(frames[0]);
  });
  byId("whole").addEventListener("click", () => zoom(frames[0]));
  byId("search").addEventListener("input", search);
  byId("tools").addEventListener("submit", (event) => event.preventDefault());

  for (const hidden of document.querySelectorAll(".scripted")) hidden.hidden = false;
  let width = 0;
  new ResizeObserver(() => { if (graph.clientWidth !== width) { width = graph.clientWidth; draw(); } }).observe(graph);
  draw();
  say(frames[0]);
})();
