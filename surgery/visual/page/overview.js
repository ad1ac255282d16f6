/* The strip at the edge: every node of the scope, from first to last, the worst of each stretch in its colour. */
class Overview {
  constructor(canvas, app) {
    this.canvas = canvas;
    this.app = app;
    canvas.addEventListener("pointerdown", (event) => this.go(event));
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) this.go(event); });
  }

  go(event) {
    const members = this.app.model.members[this.app.scope];
    const node = members[Math.max(0, Math.min(members.length - 1, Math.floor(event.offsetY / this.canvas.clientHeight * members.length)))];
    if (node !== undefined) this.app.centre(this.app.place(node));
  }

  paint() {
    const { canvas, app } = this;
    const dots = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    [canvas.width, canvas.height] = [Math.round(width * dots), Math.round(height * dots)];
    const pen = canvas.getContext("2d");
    pen.scale(dots, dots);
    const members = app.model.members[app.scope];
    const step = Math.max(2, height / Math.max(1, members.length));
    for (let y = 0; y < height && members.length; y += step) {
      const first = Math.floor(y / height * members.length), last = Math.max(first + 1, Math.floor((y + step) / height * members.length));
      const worst = app.colours.metric === "family" ? members[first] : app.colours.worst(app.scope, first, Math.min(last, members.length));
      const colour = worst >= 0 && worst !== undefined ? app.colours.node(worst) : null;
      if (!colour) continue;
      pen.fillStyle = colour;
      const failed = app.model.error("passed", worst) === false;
      pen.fillRect(failed ? 2 : 7, y, failed ? width - 4 : width - 9, Math.max(1, step - (step > 4 ? 1 : 0)));
    }
    this.frame(pen, members.length, width, height);
  }

  frame(pen, count, width, height) {
    const { model, painter } = this.app;
    let [first, last] = [count, -1];
    for (const hit of painter.hits) {
      const span = hit.node >= 0 ? [model.position[hit.node], model.position[hit.node] + 1] : hit.group && !hit.group.open ? [hit.group.start, hit.group.end] : null;
      if (span) [first, last] = [Math.min(first, span[0]), Math.max(last, span[1])];
    }
    if (last < 0) return;
    pen.strokeStyle = painter.ink.accent;
    pen.lineWidth = 2;
    pen.strokeRect(1, first / count * height, width - 2, Math.max(4, (last - first) / count * height));
  }
}
