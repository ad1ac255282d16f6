const MOST_LINKS = 24, MOST_LISTED = 40, MOST_TYPED = 4000;

/* An element with text or elements inside. Text is only ever set as text. */
function element(tag, name, ...inside) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...inside.filter((part) => part !== null && part !== undefined));
  return made;
}

function button(text, action, title = "") {
  const made = element("button", "", text);
  made.type = "button";
  made.title = title;
  made.addEventListener("click", action);
  return made;
}

/* The pane on the right: the node, tensor or group that is chosen, else the model. */
class Details {
  constructor(pane, app) {
    this.pane = pane;
    this.app = app;
    this.model = app.model;
  }

  show() {
    const { node, group, tensor, range } = this.app.chosen;
    const parts = range ? this.range([...range]) : node >= 0 ? this.node(node) : group ? this.group(this.app.chosen.about) : tensor >= 0 ? this.tensorAlone(tensor) : this.whole();
    this.pane.replaceChildren(...parts.filter(Boolean));
    this.pane.scrollTop = 0;
  }

  node(node) {
    const { model } = this;
    const domain = model.domain(node);
    const head = [
      element("h2", "", model.op(node)),
      element("span", "name", model.name(node) || "(no name)"),
      element("span", "dim", `node ${node.toLocaleString("en")}${domain ? `, domain ${domain}` : ""}`),
    ];
    return [
      ...head, ...this.error(node), ...this.inside(node),
      ...this.tensors("Inputs", model.list("inputs", node), true), ...this.tensors("Read by its bodies", model.list("captures", node), true),
      ...this.tensors("Outputs", model.list("outputs", node), false), ...this.attributes(node), ...this.cut([node]),
    ];
  }

  error(node) {
    const { model } = this;
    if (model.errorRow[node] < 0) return [];
    const passed = model.error("passed", node);
    const word = passed === false ? element("span", "bad", "✗ fails") : passed ? element("span", "good", "✓ passes") : element("span", "dim", "– not judged");
    const list = element("dl", "", element("dt", "", "verdict"), element("dd", "", word));
    for (const [name, text] of METRICS) if (model.error(name, node) !== null) list.append(element("dt", "", text), element("dd", "", full(model.error(name, node))));
    for (const name of ["finding", "diagnosis", "mode", "tensor"]) {
      if (model.error(name, node)) list.append(element("dt", "", name === "mode" ? "observed" : name), element("dd", "", model.error(name, node)));
    }
    return [element("h3", "", "Error"), list];
  }

  inside(node) {
    const bodies = (this.model.bodies.get(node) || []).map((scope) => [scope, this.model.scopes[scope].attribute]);
    const called = this.model.called(node);
    if (called !== undefined) bodies.push([called, "function"]);
    if (!bodies.length) return [];
    const links = bodies.map(([scope, name]) => button(`open ${name} (${counted(this.model.members[scope].length)})`, () => this.app.enter(scope)));
    return [element("h3", "", "Inside"), element("div", "links", ...links)];
  }

  tensors(title, tensors, reading) {
    if (!tensors.length) return [];
    const shown = tensors.slice(0, MOST_LISTED).map((tensor) => this.tensor(tensor, reading));
    const more = tensors.length > MOST_LISTED ? element("p", "dim", `and ${tensors.length - MOST_LISTED} more`) : null;
    return [element("h3", "", title), ...shown, more];
  }

  tensor(tensor, reading) {
    if (tensor < 0) return element("div", "tensor dim", "(absent)");
    const { model } = this;
    const kind = model.tensors.kinds[model.tensors.kind[tensor]];
    const bytes = model.tensors.bytes[tensor];
    const notes = [kind === "node" ? "" : kind, bytes ? size(bytes) : "", model.isOutput.has(tensor) && kind !== "output" ? "graph output" : ""];
    return element("div", "tensor", element("span", "name", model.tensorName(tensor)),
      element("span", "", model.tensorType(tensor)), element("span", "dim", notes.filter(Boolean).map((note) => `  ${note}`).join("")),
      this.links(reading ? [model.producer[tensor]].filter((node) => node >= 0) : Array.from(model.consumers(tensor)), reading));
  }

  links(nodes, reading) {
    if (!nodes.length) return null;
    const made = nodes.slice(0, MOST_LINKS).map((node) => this.link(node, reading ? "from " : "to "));
    if (nodes.length > MOST_LINKS) made.push(element("span", "dim", `and ${(nodes.length - MOST_LINKS).toLocaleString("en")} more`));
    return element("div", "links", ...made);
  }

  link(node, before = "") {
    const { model } = this;
    return button(`${before}${model.op(node)} ${tail(model.label(node), 26)}`, () => this.app.goTo(node));
  }

  attributes(node) {
    const { model } = this;
    const pairs = model.list("attributes", node);
    if (!pairs.length) return [];
    const list = element("dl", "");
    for (let i = 0; i < pairs.length; i += 2) {
      list.append(element("dt", "", model.nodes.texts[pairs[i]]), element("dd", "value", model.nodes.texts[pairs[i + 1]]));
    }
    return [element("h3", "", "Attributes"), list];
  }

  tensorAlone(tensor) {
    const { model } = this;
    return [element("h2", "", "Tensor"), this.tensor(tensor, false), ...(model.producer[tensor] >= 0 ? [element("h3", "", "Made by"), this.link(model.producer[tensor])] : [])];
  }

  group({ key, start, end, title }) {
    const { app, model } = this;
    const members = model.members[app.scope].slice(start, end);
    const open = app.folds.isOpen(key);
    const worst = app.colours.worst(app.scope, start, end);
    return [
      element("h2", "", title), element("span", "dim", `nodes ${members[0].toLocaleString("en")} to ${members[members.length - 1].toLocaleString("en")}`),
      element("div", "links", button(open ? "Fold" : "Open", () => app.toggle(app.chosen.about))),
      ...(worst >= 0 ? [element("h3", "", "Worst in it"), ...this.error(worst).slice(1), element("div", "links", this.link(worst))] : []),
      element("h3", "", "Operators"), this.operators(members), ...this.cut(members),
      element("h3", "", "Nodes"), element("div", "links", ...members.slice(0, MOST_LISTED).map((node) => this.link(node))),
      members.length > MOST_LISTED ? element("p", "dim", `and ${(members.length - MOST_LISTED).toLocaleString("en")} more`) : null,
    ];
  }

  range(nodes) {
    return [
      element("h2", "", counted(nodes.length)), element("span", "dim", "all on the ways between two"),
      element("div", "links", this.link(nodes[0], "from "), this.link(nodes[nodes.length - 1], "to ")),
      element("h3", "", "Operators"), this.operators(nodes), ...this.cut(nodes),
    ];
  }

  /* The command that makes nodes of the main graph a model of their own, where every name in it can be typed. */
  cut(nodes) {
    const { model } = this;
    const [inputs, outputs] = model.border(nodes).map((tensors) => tensors.map((tensor) => model.tensorName(tensor)));
    const words = [model.given.facts.file, ...inputs, ...outputs];
    if (nodes.some((node) => model.nodes.scope[node]) || !outputs.length || !words.every(typeable) || words.join().length > MOST_TYPED) return [];
    const command = ["layerwise surgeon extract", quoted(words[0]), ...(inputs.length ? ["--inputs", ...inputs.map((name) => quoted(`${name}:auto:auto`))] : []),
      "--outputs", ...outputs.map((name) => quoted(`${name}:auto`)), "-o extracted.onnx"].join(" ");
    return [element("h3", "", "As a model of its own"), element("code", "value", command),
      element("div", "links", button("Copy", () => navigator.clipboard.writeText(command)))];
  }

  operators(nodes) {
    const counts = new Map();
    for (const node of nodes) counts.set(this.model.op(node), (counts.get(this.model.op(node)) || 0) + 1);
    const list = element("dl", "");
    const sorted = [...counts].sort((a, b) => b[1] - a[1]).slice(0, MOST_LISTED);
    for (const [op, count] of sorted) list.append(element("dt", "", count.toLocaleString("en")), element("dd", "", op));
    return list;
  }

  whole() {
    const { model } = this;
    return [
      element("h2", "", model.given.title), facts(model.given.facts), ...this.comparison(), ...this.scopes(),
      ...(model.given.notes.length ? [element("h3", "", "Notes"), ...model.given.notes.map((note) => element("p", "value", note))] : []),
      element("h3", "", "Operators"), this.operators(model.members.flat()),
    ];
  }

  comparison() {
    const { errors } = this.model.given;
    if (!errors) return [];
    const failed = errors.node.filter((_, row) => errors.passed[row] === false);
    const order = [...errors.node].sort((a, b) => this.app.colours.weight(b) - this.app.colours.weight(a)).slice(0, 10);
    const row = (node) => element("div", "tensor", element("span", this.model.error("passed", node) === false ? "bad" : "dim",
      `${mark(this.model.error("passed", node))} ${full(this.model.error("rel_l2", node))}  ${this.model.error("finding", node)}`), element("div", "links", this.link(node)));
    return [
      element("h3", "", "Comparison"), element("p", "value", errors.title), facts(errors.facts),
      failed.length ? element("div", "links", this.link(failed[0], "first that fails: ")) : element("p", "good", "no node fails"),
      element("h3", "", "Worst nodes"), ...order.map(row),
    ];
  }

  scopes() {
    const inner = this.model.scopes.map((scope, number) => [scope, number]).slice(1, 1 + MOST_LISTED);
    if (!inner.length) return [];
    const links = inner.map(([scope, number]) => button(`${scope.kind} ${tail(scope.attribute || scope.name, 26)} (${counted(this.model.members[number].length)})`, () => this.app.enter(number)));
    return [element("h3", "", "Bodies and functions"), element("div", "links", ...links)];
  }
}

/* Printable ASCII without a backslash, which may stand for something that was escaped; no option. */
function typeable(name) { return /^[\x21-\x5b\x5d-\x7e][\x20-\x5b\x5d-\x7e]*$/.test(name) && !name.startsWith("-"); }
function quoted(word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`; }

function facts(pairs) {
  const list = element("dl", "");
  for (const [name, text] of Object.entries(pairs)) list.append(element("dt", "", name), element("dd", "", text));
  return list;
}
function counted(count) { return count === 1 ? "1 node" : `${count.toLocaleString("en")} nodes`; }
function full(value) { return typeof value === "number" ? (value === 0 ? "0" : value.toExponential(3)) : value === null ? "?" : value; }
function size(bytes) {
  for (const unit of ["bytes", "kB", "MB"]) {
    if (bytes < 1000) return `${bytes < 10 && unit !== "bytes" ? bytes.toFixed(1) : Math.round(bytes)} ${unit}`;
    bytes /= 1000;
  }
  return `${bytes.toFixed(2)} GB`;
}
