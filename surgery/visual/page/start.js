const KEYS = {
  "/": (app) => app.finder.query.focus(), n: (app) => app.finder.step(1), N: (app) => app.finder.step(-1),
  e: (app) => app.nextError(1), E: (app) => app.nextError(-1), p: (app) => app.neighbour(false), c: (app) => app.neighbour(true),
  f: (app) => app.fit(), "+": (app) => app.zoom(1.25), "=": (app) => app.zoom(1.25), "-": (app) => app.zoom(0.8),
  o: (app) => app.toggleChosen(), Escape: (app) => app.choose({}),
  ArrowUp: (app) => app.pan(0, 90), ArrowDown: (app) => app.pan(0, -90), ArrowLeft: (app) => app.pan(90, 0), ArrowRight: (app) => app.pan(-90, 0),
  PageDown: (app) => app.pan(0, -app.canvas.clientHeight * 0.9), PageUp: (app) => app.pan(0, app.canvas.clientHeight * 0.9),
  Home: (app) => app.start(),
};

function listen(app) {
  const { canvas } = app;
  let [from, travelled] = [null, 0];
  canvas.addEventListener("pointerdown", (event) => {
    [from, travelled] = [[event.clientX, event.clientY], 0];
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [x, y] = [event.clientX - from[0], event.clientY - from[1]];
    travelled += Math.abs(x) + Math.abs(y);
    from = [event.clientX, event.clientY];
    if (travelled > 4) { canvas.classList.add("moving"); app.pan(x, y); }
  });
  const lift = (event) => {
    if (from && travelled <= 4 && event.type === "pointerup") app.click(event.offsetX, event.offsetY, event.shiftKey);
    from = null;
    canvas.classList.remove("moving");
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("dblclick", (event) => app.doubleClick(event.offsetX, event.offsetY));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const step = event.deltaMode ? 18 : 1;
    if (event.ctrlKey || event.metaKey) app.zoom(Math.exp(-event.deltaY * step / 300), event.offsetX, event.offsetY);
    else if (event.shiftKey && !event.deltaX) app.pan(-event.deltaY * step, 0);
    else app.pan(-event.deltaX * step, -event.deltaY * step);
  }, { passive: false });
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (KEYS[event.key]) { event.preventDefault(); KEYS[event.key](app); }
  });
  new ResizeObserver(() => app.redraw()).observe(document.getElementById("stage"));
}

function wire(app) {
  const on = (id, action) => document.getElementById(id).addEventListener("click", action);
  on("fold", () => app.foldAll(false));
  on("unfold", () => app.foldAll(true));
  on("fit", () => app.fit());
  on("in", () => app.zoom(1.25));
  on("out", () => app.zoom(0.8));
  on("theme", () => setTheme(app, theme() === "dark" ? "light" : "dark"));
  const select = document.getElementById("colour");
  select.append(...app.colours.choices().map(([name, text]) => { const option = element("option", "", text); option.value = name; return option; }));
  select.value = app.colours.metric;
  select.addEventListener("change", () => { app.colours.choose(select.value); app.details.show(); app.finder.show(); drawLegend(app); app.redraw(); });
}

function setTheme(app, name) {
  document.documentElement.dataset.theme = name;
  app.painter.readTheme();
  drawLegend(app);
  app.redraw();
}

/* What the colours mean; marks and borders say the same without colour. */
function drawLegend(app) {
  const { colours, legend } = app;
  const swatch = (colour, text) => {
    const dot = element("i", "");
    dot.style.background = colour;
    return element("span", "", dot, text);
  };
  if (colours.metric === "family") {
    const present = new Set(app.model.nodes.family);
    const names = app.model.nodes.families.map((name, i) => [name, i]).filter(([, i]) => present.has(i));
    legend.replaceChildren(...names.map(([name, i]) => swatch(FAMILY[theme()][i], name)));
    return;
  }
  const bar = element("div", "bar");
  bar.style.background = `linear-gradient(90deg, ${[0, 0.2, 0.4, 0.6, 0.8, 1].map((at) => colours.at(at)).join(", ")})`;
  const [low, high] = colours.span;
  const ticks = element("div", "ticks", ...[0, 0.25, 0.5, 0.75, 1].map((at) => element("span", "", (10 ** (low + (high - low) * at)).toExponential(0))));
  const marks = [swatch(colours.at(2), "not finite"), element("span", "bad", "✗ fails, thick border"), element("span", "", "✓ passes"), element("span", "dim", "– not judged")];
  legend.replaceChildren(element("span", "", colours.choices().find(([name]) => name === colours.metric)[1]), element("div", "", bar, ticks), ...marks);
}

readDocument().then((given) => {
  document.getElementById("title").textContent = given.title;
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const app = new App(new Model(given));
  app.finder = new Finder(app);
  wire(app);
  listen(app);
  app.show(0);
  setTheme(app, theme());
  app.start();
}).catch((error) => { document.body.append(element("p", "alone bad", `The page cannot be shown: ${error.message}`)); });
