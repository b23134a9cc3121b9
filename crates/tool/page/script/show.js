// Shows a race: controls, figures, tables. May be called again with a newer body and newer data.

const main = document.getElementById("main");

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// The contender's symbol and line as a small picture.
function swatch(c) {
  const plot = Plot.plot({
    width: 26, height: 14, margin: 0, x: {type: "identity", axis: null}, y: {type: "identity", axis: null},
    marks: [
      Plot.link([0], {x1: 0, x2: 26, y1: 7, y2: 7, stroke: look(c).colour, strokeWidth: 2, strokeDasharray: look(c).dash}),
      Plot.dot([0], {x: 13, y: 7, r: 4.2, symbol: look(c).symbol, fill: look(c).colour, stroke: look(c).colour}),
    ],
  });
  plot.setAttribute("aria-hidden", "true");
  return plot;
}

function chip(c) {
  const update = () => { redrawAll(); filterTables(main); controls(); emphasise(); };
  const pin = make("button", {
    type: "button", class: "pin", "data-c": c, "aria-pressed": state.pinned.has(c), title: "Emphasise in all plots and tables",
    onclick: () => { state.pinned.has(c) ? state.pinned.delete(c) : state.pinned.add(c); state.over = null; pin.setAttribute("aria-pressed", state.pinned.has(c)); emphasise(); },
    onfocus: () => { if (pin.matches(":focus-visible")) { state.over = c; emphasise(); } },
    onblur: () => { state.over = null; emphasise(); },
  }, swatch(c), name(c));
  const hide = make("button", {
    type: "button", class: "hide", "aria-pressed": !isShown(c), "aria-label": `${isShown(c) ? "Hide" : "Show"} ${name(c)}`, title: isShown(c) ? "Hide" : "Show",
    onclick: () => {
      isShown(c) ? state.hidden.add(c) : state.hidden.delete(c);
      update();
      document.querySelector(`#controls .chip[data-chip="${c}"] .hide`)?.focus();
    },
  }, isShown(c) ? "×" : "+");
  return make("span", {class: `chip${isShown(c) ? "" : " hidden"}`, "data-chip": c}, pin, hide);
}

function controls() {
  const nav = document.getElementById("controls");
  const raced = state.data.contenders.map((_, c) => c).filter((c) => look(c).raced);
  const chips = make("div", {class: "chips", role: "group", "aria-label": "Contenders"}, ...raced.map(chip));
  const tools = make("div", {class: "tools"});
  if (state.data.loads.length > 1) {
    const select = make("select", {id: "load", onchange: () => { state.load = Number(select.value); showFigures(); filterTables(main); emphasise(); }},
      make("option", {value: -1}, "all loads"), ...state.data.loads.map((load, l) => make("option", {value: l}, load)));
    select.value = state.load;
    tools.append(make("label", {}, "Load ", select));
  }
  const scale = make("select", {id: "scale", onchange: () => { state.linear = scale.value === "linear"; redrawAll(); }},
    make("option", {value: "log"}, "logarithmic"), make("option", {value: "linear"}, "linear"));
  scale.value = state.linear ? "linear" : "log";
  tools.append(make("label", {}, "Axes ", scale));
  tools.append(make("span", {class: "files"}, "Save ", ...(state.data.capacities ? CAPACITY_DOWNLOADS : DOWNLOADS).map(([file, title, onclick]) => make("button", {type: "button", title, onclick}, file))));
  nav.replaceChildren(chips, tools);
}

function showFigures() {
  clearFigures();
  for (const host of main.querySelectorAll("[data-plots]")) {
    host.replaceChildren();
    figuresOf(host.dataset).forEach((spec) => add(host, spec));
  }
  figures.forEach((figure) => { if (figure.element.getBoundingClientRect().top < innerHeight * 1.5) { figure.near = true; draw(figure); } });
}

function figuresOf({plots, load, sweep}) {
  if (plots === "capacity") return capacityFigures();
  const loads = state.data.loads.map((_, l) => l).filter((l) => state.load < 0 || l === state.load);
  const many = state.data.loads.length > 4;
  const costs = loads.filter((l) => !state.data.summary.asked.loads[l].beside);
  switch (plots) {
    case "ratios": return (many && state.load < 0 ? [] : costs).map((l) => forest(l, state.data.loads[l]));
    case "sweep": return sweepFigures(sweeps()[sweep]);
    case "load": {
      const l = Number(load);
      if (!loads.includes(l)) return [];
      const cell = [cost(l), percentiles(l), beside(l), roles(l), memoryPlot(l), settling(l), thenAndNow(l)];
      return many && state.load < 0 ? [forest(l, "Cost compared with the baseline"), ...cell] : cell;
    }
    default: return [strip(), code()];
  }
}

const tip = make("div", {id: "tip", hidden: ""});
function point(event) {
  const element = event.target.closest?.("[data-c]");
  const c = element && main.contains(element) ? Number(element.dataset.c) : null;
  if (c !== state.over) { state.over = c; emphasise(); }
  const text = event.target.closest?.("[data-text]")?.dataset.text;
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const {clientX: x, clientY: y} = event;
  tip.style.left = `${clamp(x + 14, 4, innerWidth - tip.offsetWidth - 4)}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - 12 - tip.offsetHeight : y + 18}px`;
}

function bindOnce() {
  document.body.append(tip);
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerleave", () => { state.over = null; tip.hidden = true; emphasise(); });
  main.addEventListener("click", (event) => {
    const element = event.target.closest("figure [data-c], tbody tr[data-c]");
    if (!element || event.target.closest("button, summary, a, select, code, pre")) return;
    const c = Number(element.dataset.c);
    state.pinned.has(c) ? state.pinned.delete(c) : state.pinned.add(c);
    controls();
    emphasise();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    state.pinned.clear();
    state.over = null;
    controls();
    emphasise();
  });
  main.addEventListener("toggle", () => figures.forEach((figure) => { if (figure.canvas.clientWidth > 0 && figure.width !== widthOf(figure)) redraw(figure); }), true);
  addEventListener("beforeprint", () => {
    for (const details of main.querySelectorAll("section.load details, header details")) details.open = true;
    drawAll();
  });
  const feed = document.documentElement.dataset.feed;
  if (feed) follow(feed);
}

// Follows a race: its state in words, and a newer page after each pass.
function follow(url) {
  const live = document.getElementById("live");
  const source = new EventSource(url);
  const say = (text, kind) => { live.textContent = text; live.className = `live ${kind}`; };
  source.addEventListener("message", ({data}) => { const next = JSON.parse(data); show(next.body, next.data); });
  source.addEventListener("progress", ({data}) => say(JSON.parse(data).text, "running"));
  source.addEventListener("over", () => { source.close(); say(`The race is over: ${live.textContent}. This page no longer changes.`, "over"); });
  // The browser connects again by itself.
  source.addEventListener("error", () => { if (source.readyState === EventSource.CONNECTING) say("The race does not answer, so the figures are those of its last answer. Trying again.", "lost"); });
}

let bound = false;
function show(body, data) {
  const open = [...main.querySelectorAll("details")].map((details) => details.open);
  if (body !== null) {
    main.innerHTML = body;
    for (const [i, details] of [...main.querySelectorAll("details")].entries()) if (i in open && bound) details.open = open[i];
  }
  data.capacities ? takeCapacities(data) : take(data);
  if (!bound) bindOnce();
  bound = true;
  controls();
  bindTables(main);
  showFigures();
  filterTables(main);
  emphasise();
}

window.regatta = {show, state, figures, drawAll, files: {cellsCsv, roundsCsv, stepsCsv, capacityJson}, format: {time, ratio, memory, interval, withInterval, percent, brief}};
