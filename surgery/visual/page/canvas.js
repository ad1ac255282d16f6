const SANS = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif', MONO = 'ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace';
const TEXT_FROM = 0.32, LINES_FROM = 0.05;

/* Draws what is in view of the scope on view. `hits` has a box for all that was drawn and can be clicked. */
class Painter {
  constructor(canvas, app) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.app = app;
    this.hits = [];
    this.ink = {};
  }

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["page", "card", "text", "dim", "line", "edge", "accent", "bad", "group", "chip"]) this.ink[name] = style.getPropertyValue(`--${name}`).trim();
  }

  paint() {
    const { canvas, pen, app } = this;
    const dots = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
      [canvas.width, canvas.height] = [Math.round(width * dots), Math.round(height * dots)];
    }
    const { scale, x, y } = app.camera;
    this.scale = scale;
    this.view = [-x / scale, -y / scale, (width - x) / scale, (height - y) / scale];
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.fillStyle = this.ink.page;
    pen.fillRect(0, 0, width, height);
    pen.setTransform(dots * scale, 0, 0, dots * scale, dots * x, dots * y);
    pen.direction = "ltr";
    pen.textBaseline = "alphabetic";
    this.hits = [];
    this.seen = 0;
    this.depth = 0;
    this.level(app.scopeLevel(), String(app.scope), 0, 0, 0);
    return this.seen;
  }

  /* A level with its left upper corner at (left, top); base: position in the scope of its first node. */
  level(level, key, left, top, base) {
    const shape = this.app.geometry.level(level, key);
    const from = { x: left - shape.left, y: top };
    const first = lastAtMost(shape.top, this.view[1] - from.y, shape.tall.length);
    const last = lastAtMost(shape.top, this.view[3] - from.y, shape.tall.length);
    if (this.scale >= LINES_FROM) drawEdges(this, level, shape, from, first, last, key);
    for (let row = first; row <= last && row < level.rows.length; row++) this.row(level, shape, key, from, base, row);
  }

  row(level, shape, key, from, base, row) {
    const items = level.rows[row];
    let at = 0;
    if (items.length > 32) {  // a wide row: skip what lies to the left of the window
      let [low, high] = [0, items.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (from.x + shape.x[items[middle]] + shape.w[items[middle]] / 2 < this.view[0]) low = middle + 1; else high = middle;
      }
      at = low;
    }
    for (; at < items.length; at++) {
      const item = items[at];
      const x = from.x + shape.x[item] - shape.w[item] / 2;
      if (x > this.view[2]) break;
      const y = from.y + shape.top[row] + (shape.tall[row] - shape.heights[item]) / 2;
      if (x + shape.w[item] >= this.view[0] && y + shape.heights[item] >= this.view[1]) this.item(level, shape, key, base, item, x, y);
    }
  }

  item(level, shape, key, base, item, x, y) {
    const [kind, ref, w, h] = [level.kind[item], level.ref[item], shape.w[item], shape.heights[item]];
    if (kind === RUN) this.run(level.runs[ref], `${key}/${ref}`, base + level.runs[ref].start, x, y, w, h);
    else if (kind === NODE) this.node(this.app.model.members[this.app.scope][base + ref], x, y, w, h, level.far.get(item));
    else this.pill(kind, kind < PORT_IN ? ref : this.portTensor(level, kind, ref, base), x, y, w, h);
  }

  portTensor(level, kind, ref, base) {
    const node = this.app.model.members[this.app.scope][base + level.ports[2 * ref]];
    const slot = level.ports[2 * ref + 1];
    return kind === PORT_IN ? this.app.model.reads(node)[slot] : this.app.model.list("outputs", node)[slot];
  }

  node(node, x, y, w, h, far) {
    this.seen++;
    const { pen, app } = this;
    const colour = app.colours.node(node);
    const failed = app.model.error("passed", node) === false;
    this.hits.push({ x, y, w, h, node });
    this.box(x, y, w, h, { fill: this.scale < TEXT_FROM ? colour || this.ink.line : this.ink.card, failed, chosen: app.chosen.node === node || Boolean(app.chosen.range?.has(node)) });
    if (this.scale < TEXT_FROM) return;
    pen.fillStyle = colour || this.ink.line;
    pen.beginPath();
    pen.roundRect(x, y, 7, h, [7, 0, 0, 7]);
    pen.fill();
    const badge = app.colours.badge(node);
    const room = badge ? w - 96 : w - 24;
    this.text(app.model.op(node), x + 15, y + 19, room, this.ink.text, `600 13px ${SANS}`);
    this.text(tail(app.model.label(node), 24), x + 15, y + 35, w - 24, this.ink.dim, `11px ${MONO}`);
    const output = app.model.list("outputs", node).find((tensor) => tensor >= 0);
    if (output !== undefined) this.text(app.model.tensorType(output), x + 15, y + 50, w - 24, this.ink.dim, `11px ${SANS}`);
    if (badge) this.chip(badge, x + w - 7, y + 8, colour);
    if (far) this.far(far, x, y, w, h);
  }

  /* Where an edge is too long to be drawn: a dashed end above or below, with how many. */
  far([into, out], x, y, w, h) {
    const ends = [[into, y - 4, "↑"], [out, y + h + 13, "↓"]];
    for (const [count, at, arrow] of ends) if (count) this.text(`${arrow} ${count} far`, x + 8, at, 60, this.ink.accent, `11px ${SANS}`);
  }

  pill(kind, tensor, x, y, w, h) {
    const port = kind >= PORT_IN, inward = kind === INPUT || kind === PORT_IN;
    this.hits.push({ x, y, w, h, tensor });
    this.box(x, y, w, h, { fill: this.ink.chip, round: 11, chosen: this.app.chosen.tensor === tensor && tensor !== undefined });
    if (this.scale < TEXT_FROM || tensor === undefined) return;
    const name = this.app.model.tensorName(tensor);
    this.text(`${inward ? "→" : "←"} ${tail(name, port ? 15 : 18)}`, x + 9, y + (port ? 15 : 17), w - 16, this.ink.text, `${port ? 11 : 12}px ${MONO}`);
    if (!port) this.text(this.app.model.tensorType(tensor), x + 9, y + 32, w - 16, this.ink.dim, `11px ${SANS}`);
  }

  run(run, key, start, x, y, w, h) {
    const { app } = this;
    const shape = app.geometry.run(run, key);
    const end = start + run.period * run.count;
    const title = `${run.count.toLocaleString("en")} equal blocks`;
    if (!shape.open) return this.group(title, `${run.period} nodes each`, key, start, end, x, y, w, h, true);
    this.frame(key, x, y, w, h);
    this.depth++;
    const first = lastAtMost(shape.tops, this.view[1] - y, run.count), last = lastAtMost(shape.tops, this.view[3] - y, run.count);
    for (let k = first; k <= last; k++) this.block(run, `${key}:${k}`, k, shape.blocks[k], start + k * run.period, x + w / 2, y + shape.tops[k]);
    this.depth--;
    return this.head(title, key, start, end, x, y, w, h);
  }

  block(run, key, k, shape, start, centre, y) {
    const [x, end] = [centre - shape.w / 2, start + run.period];
    if (k) this.link(centre, y - BLOCK_GAP, y);
    const title = blockTitle(run, k);
    if (!shape.open) return this.group(title, "", key, start, end, x, y, shape.w, shape.h, false);
    this.frame(key, x, y, shape.w, shape.h);
    this.depth++;
    const inside = this.app.geometry.level(run.level, key);
    this.level(run.level, key, x + (shape.w - inside.width) / 2, y + HEAD, start);
    this.depth--;
    return this.head(title, key, start, end, x, y, shape.w, shape.h);
  }

  link(x, from, to) {
    if (this.scale < LINES_FROM) return;
    this.pen.strokeStyle = this.pen.fillStyle = this.ink.edge;
    this.pen.lineWidth = 1.3;
    this.pen.beginPath();
    this.pen.moveTo(x, from);
    this.pen.lineTo(x, to - 5);
    this.pen.stroke();
    arrow(this.pen, x, to);
  }

  /* A folded run (drawn as a pile) or block. */
  group(title, more, key, start, end, x, y, w, h, pile) {
    this.seen++;
    const { app } = this;
    const worst = app.colours.worst(app.scope, start, end);
    const colour = worst >= 0 ? app.colours.node(worst) : null;
    const failed = worst >= 0 && app.model.error("passed", worst) === false;
    this.hits.push({ x, y, w, h, group: { key, start, end, title } });
    const chosen = app.chosen.group === key;
    if (pile) for (const by of [8, 4]) this.box(x + by, y + by - 8, w - 2 * by, 20, { fill: this.ink.group });
    this.box(x, y, w, h, { fill: this.scale < TEXT_FROM ? colour || this.ink.edge : this.ink.group, failed, chosen });
    if (this.scale < TEXT_FROM) return;
    if (colour) {
      this.pen.fillStyle = colour;
      this.pen.beginPath();
      this.pen.roundRect(x, y, 7, h, [7, 0, 0, 7]);
      this.pen.fill();
      this.chip(app.colours.badge(worst), x + w - 7, y + 8, colour);
    }
    this.text(`▸ ${title}`, x + 15, y + 20, w - (colour ? 100 : 24), this.ink.text, `600 13px ${SANS}`);
    const members = app.model.members[app.scope];
    this.text(tail(app.model.label(members[start]), 28), x + 15, y + 37, w - 24, this.ink.dim, `11px ${MONO}`);
    if (more) this.text(more, x + 15, y + 54, w - 24, this.ink.dim, `11px ${SANS}`);
  }

  /* The frame of an open run or block. */
  frame(key, x, y, w, h) {
    this.box(x, y, w, h, { fill: this.ink.group, round: 10, chosen: this.app.chosen.group === key });
  }

  /* Its head, which folds it; it stays in view below the heads around it. */
  head(title, key, start, end, x, y, w, h) {
    const top = Math.max(y, Math.min(this.view[1] + this.depth * HEAD, y + h - HEAD));
    this.hits.push({ x, y: top, w, h: HEAD, group: { key, start, end, title, open: true } });
    if (this.scale < TEXT_FROM) return;
    if (top > y) {
      this.pen.fillStyle = this.ink.group;
      this.pen.fillRect(x + 1, top, w - 2, HEAD);
    }
    const worst = this.app.colours.worst(this.app.scope, start, end);
    const chip = worst >= 0 && w > 200;
    const from = Math.max(x + 13, Math.min(this.view[0] + 10, x + w - 260));
    this.text(`▾ ${title}`, from, top + 20, w - (chip ? 110 : 26), this.ink.dim, `600 12px ${SANS}`);
    if (chip) this.chip(this.app.colours.badge(worst), x + w - 8, top + 7, this.app.colours.node(worst));
  }

  box(x, y, w, h, { fill, failed = false, chosen = false, round = 7 }) {
    const { pen } = this;
    pen.fillStyle = fill;
    pen.strokeStyle = chosen ? this.ink.accent : failed ? this.ink.bad : this.ink.line;
    pen.lineWidth = chosen ? Math.max(3, 2 / this.scale) : failed ? Math.max(2.4, 1 / this.scale) : 1;
    pen.beginPath();
    if (this.scale < 0.12) pen.rect(x, y, w, h); else pen.roundRect(x, y, w, h, round);
    pen.fill();
    if (this.scale >= 0.12 || chosen || failed) pen.stroke();
  }

  chip(text, right, y, colour) {
    const { pen } = this;
    pen.font = `600 11px ${SANS}`;
    const w = pen.measureText(text).width + 12;
    const fill = colour || this.ink.chip;
    pen.fillStyle = fill;
    pen.beginPath();
    pen.roundRect(right - w, y, w, 17, 8);
    pen.fill();
    this.text(text, right - w + 6, y + 12.5, w, inkOn(fill), pen.font);
  }

  text(text, x, y, room, colour, font) {
    this.pen.fillStyle = colour;
    this.pen.font = font;
    this.pen.fillText(text.length > 60 ? `${text.slice(0, 59)}…` : text, x, y, room);
  }
}

function blockTitle(run, k) { return `block ${k + 1} of ${run.count.toLocaleString("en")}`; }

/* The end of a name, which tells nodes apart. */
function tail(name, most) {
  const letters = name.length > 4 * most ? name.slice(-4 * most) : name;
  const points = Array.from(letters);
  return points.length > most ? `…${points.slice(1 - most).join("")}` : letters;
}
