const LEAST_SCALE = 0.02, LEAST_FIT = 0.05;

/* What is on view and chosen, and how mouse and keys change it. */
class App {
  constructor(model) {
    this.model = model;
    this.folds = new Folds(model.count <= 60);
    this.geometry = new Geometry(model.given.sizes, this.folds);
    this.colours = new Colours(model);
    this.camera = { scale: 1, x: 0, y: 0 };
    this.scope = 0;
    this.canvas = document.getElementById("graph");
    this.painter = new Painter(this.canvas, this);
    this.map = new Overview(document.getElementById("map"), this);
    this.details = new Details(document.getElementById("details"), this);
    this.legend = document.getElementById("legend");
    this.view = document.getElementById("view");
    this.choose({});
  }

  scopeLevel() { return this.model.scopes[this.scope].level; }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const seen = this.painter.paint();
      this.map.paint();
      this.view.textContent = `${seen.toLocaleString("en")} in view, ${Math.round(this.camera.scale * 100)} %`;
    });
  }

  /* Choose a node, a tensor, a group ({key, start, end, title}) or a range of nodes up to one; nothing is the model. */
  choose({ node = -1, tensor = -1, group = null, range = null }) {
    this.chosen = { node, tensor, group: group && group.key, about: group, range: range && new Set(range) };
    this.chosenItems = new Map();
    const inside = node >= 0 ? node : group ? this.model.members[this.scope][group.start] : -1;
    if (inside >= 0) {
      for (const step of this.steps(inside)) {
        this.chosenItems.set(step.key, step.item);
        if (group && (step.runKey === group.key || step.blockKey === group.key)) break;
      }
    }
    this.details.show();
    this.redraw();
  }

  chosenItem(key) { return this.chosenItems.get(key); }

  steps(node) {
    const scope = this.model.nodes.scope[node];
    return stepsTo(this.model.scopes[scope].level, String(scope), this.model.position[node]);
  }

  /* Where a node is, or the folded group it is in: [x, y, width, height]. `until`: the key of the group wanted. */
  place(node, until = null) {
    let [left, top] = [0, 0];
    for (const step of this.steps(node)) {
      const shape = this.geometry.level(step.level, step.key);
      const box = [left - shape.left + shape.x[step.item] - shape.w[step.item] / 2, top + upper(step.level, shape, step.item), shape.w[step.item], shape.heights[step.item]];
      if (!step.run || step.runKey === until) return box;
      const run = this.geometry.run(step.run, step.runKey);
      if (!run.open) return box;
      const block = run.blocks[step.block];
      const inner = [box[0] + (box[2] - block.w) / 2, box[1] + run.tops[step.block], block.w, block.h];
      if (!block.open || step.blockKey === until) return inner;
      const inside = this.geometry.level(step.run.level, step.blockKey);
      [left, top] = [inner[0] + (block.w - inside.width) / 2, inner[1] + HEAD];
    }
    return null;
  }

  /* Open what hides a node, bring it to the middle and choose it. */
  goTo(node) {
    if (this.model.nodes.scope[node] !== this.scope) this.show(this.model.nodes.scope[node]);
    for (const step of this.steps(node)) {
      if (!step.run) break;
      this.folds.set(step.runKey, true);
      this.folds.set(step.blockKey, true);
    }
    this.geometry.forget();
    this.centre(this.place(node), Math.max(0.8, Math.min(1.4, this.camera.scale)));
    this.choose({ node });
  }

  centre([x, y, w, h], scale = this.camera.scale) {
    this.camera = { scale, x: this.canvas.clientWidth / 2 - (x + w / 2) * scale, y: this.canvas.clientHeight / 2 - (y + h / 2) * scale };
    this.redraw();
  }

  /* Open or fold a group; its head stays where it is. */
  toggle(group) {
    const first = this.model.members[this.scope][group.start];
    const before = this.place(first, group.key);
    this.folds.set(group.key, !this.folds.isOpen(group.key));
    this.geometry.forget();
    const after = this.place(first, group.key);
    this.keepInView(before, after);
    this.choose({ group });
  }

  /* What was at one box is at another now: move the camera so that its head stays, within the window. */
  keepInView(before, after) {
    const { scale, x, y } = this.camera;
    const within = (place, length) => Math.min(Math.max(place, 50), length - 50);
    const middle = within((before[0] + before[2] / 2) * scale + x, this.canvas.clientWidth);
    const top = within(before[1] * scale + y, this.canvas.clientHeight);
    this.camera = { scale, x: middle - (after[0] + after[2] / 2) * scale, y: top - after[1] * scale };
  }

  /* Open or fold the group that is chosen, or fold the block around the node that is. */
  toggleChosen() {
    const { about, node } = this.chosen;
    const around = node >= 0 ? this.steps(node).findLast((step) => step.run) : null;
    if (about) this.toggle(about);
    else if (around) this.toggle({ key: around.blockKey, start: around.start, end: around.start + around.run.period, title: blockTitle(around.run, around.block) });
  }

  foldAll(open) {
    this.folds.setAll(open);
    this.geometry.forget();
    if (this.chosen.node >= 0) this.centre(this.place(this.chosen.node)); else this.start();
    this.choose({});
  }

  /* Look at another scope from its top. */
  enter(scope) {
    this.show(scope);
    this.choose({});
    this.start();
  }

  show(scope) {
    this.scope = scope;
    const trail = [];
    for (let at = scope; at > 0; at = this.model.scopes[at].owner < 0 ? 0 : this.model.nodes.scope[this.model.scopes[at].owner]) trail.unshift(at);
    const parts = [button("main graph", () => this.enter(0))];
    for (const at of trail) {
      const { owner, attribute, kind, name } = this.model.scopes[at];
      if (owner >= 0) parts.push("›", button(`${this.model.op(owner)} ${tail(this.model.label(owner), 18)}`, () => this.goTo(owner)));
      parts.push("›", button(owner >= 0 ? attribute : `${kind} ${name}`, () => this.enter(at)));
    }
    document.getElementById("where").replaceChildren(...(trail.length ? parts : []));
  }

  /* The top of the graph at a size that can be read, the width in view if that allows it. */
  start() { this.lookAtTop(Math.max(0.5, Math.min(1, (this.canvas.clientWidth - 60) / this.extent().width))); }

  extent() { return this.geometry.level(this.scopeLevel(), String(this.scope)); }

  /* What is wider than the window is looked at where its first row is. */
  lookAtTop(scale) {
    const shape = this.extent();
    const row = this.scopeLevel().rows[0] || [];
    const first = row.reduce((sum, item) => sum + shape.x[item], 0) / (row.length || 1);
    const x = shape.width * scale < this.canvas.clientWidth - 30 || !row.length ? shape.left + shape.width / 2 : first;
    this.camera = { scale, x: this.canvas.clientWidth / 2 - (x - shape.left) * scale, y: 24 };
    this.redraw();
  }

  /* All of the graph, or its top where nodes would be too small to be seen. */
  fit() {
    const { width, height } = this.extent();
    const scale = Math.min(1, (this.canvas.clientWidth - 50) / width, (this.canvas.clientHeight - 48) / Math.max(1, height));
    this.lookAtTop(Math.max(LEAST_FIT, scale));
  }

  zoom(by, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.min(3, Math.max(LEAST_SCALE, this.camera.scale * by));
    const ratio = scale / this.camera.scale;
    this.camera = { scale, x: x - (x - this.camera.x) * ratio, y: y - (y - this.camera.y) * ratio };
    this.redraw();
  }

  pan(x, y) {
    this.camera.x += x;
    this.camera.y += y;
    this.redraw();
  }

  at(x, y) {
    const [worldX, worldY] = [(x - this.camera.x) / this.camera.scale, (y - this.camera.y) / this.camera.scale];
    return this.painter.hits.findLast((box) => worldX >= box.x && worldX <= box.x + box.w && worldY >= box.y && worldY <= box.y + box.h);
  }

  click(x, y, extend) {
    const hit = this.at(x, y);
    if (extend && this.chosen.node >= 0) return this.chooseUpTo(hit);
    return hit && this.onSign(hit, x) ? this.toggle(hit.group) : this.choose(hit || {});
  }

  chooseUpTo(hit) {
    const range = hit && hit.node >= 0 ? this.model.between(this.chosen.node, hit.node) : [];
    if (range.length > 1) this.choose({ node: hit.node, range });
  }

  /* Whether a click is on the ▸ or ▾ of a group. */
  onSign(hit, x) {
    const at = (x - this.camera.x) / this.camera.scale, from = Math.max(hit.x, Math.min(this.painter.view[0], hit.x + hit.w - 260));
    return Boolean(hit.group) && at - from < 32;
  }

  doubleClick(x, y) {
    const hit = this.at(x, y);
    if (!hit) return this.zoom(1.6, x, y);
    if (hit.group && !this.onSign(hit, x)) this.toggle(hit.group);
    const bodies = hit.node >= 0 && this.model.bodies.get(hit.node);
    if (bodies) this.enter(bodies[0]);
    else if (hit.node >= 0 && this.model.called(hit.node) !== undefined) this.enter(this.model.called(hit.node));
  }

  /* The next node with an error that fails, or the worst if none does. */
  nextError(by) {
    const { errors } = this.model.given;
    if (!errors || !errors.node.length) return;
    const failed = errors.node.filter((_, row) => errors.passed[row] === false);
    const among = failed.length ? failed : errors.node;
    const after = among.findIndex((node) => node > this.chosen.node);
    const here = among.indexOf(this.chosen.node);
    const next = by > 0 ? (after < 0 ? 0 : after) : (here >= 0 ? here : after < 0 ? among.length : after) - 1;
    this.goTo(among[(next + among.length) % among.length]);
  }

  /* The producer of the first input that a node makes, or the first consumer. */
  neighbour(down) {
    const { node } = this.chosen;
    if (node < 0) return;
    const found = down ? this.model.children(node) : this.model.parents(node);
    if (found.length) this.goTo(found[0]);
  }
}
