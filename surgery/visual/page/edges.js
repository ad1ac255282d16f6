/* The edges of a level that cross the rows in view. */
function drawEdges(painter, level, shape, from, first, last, key) {
  const { pen, ink, app } = painter;
  const chosen = app.chosenItem(key);
  const [left, right] = [painter.view[0] - from.x - 400, painter.view[2] - from.x + 400];
  const [main, marked] = [[], []];
  const done = new Set();
  for (let chunk = Math.floor(first / CHUNK); chunk <= Math.floor(last / CHUNK); chunk++) {
    for (const edge of level.chunks[chunk] || []) {
      if (level.row[edge.b] < first || level.row[edge.a] > last || done.has(edge)) continue;
      if (!shape.wider.size && (edge.right < left || edge.left > right)) continue;
      done.add(edge);
      (edge.a === chosen || edge.b === chosen ? marked : main).push(edge);
    }
  }
  stroke(painter, level, shape, from, main, ink.edge, 1.3);
  stroke(painter, level, shape, from, marked, ink.accent, 2.6);
  pen.lineWidth = 1;
}

function stroke(painter, level, shape, from, edges, colour, width) {
  if (!edges.length) return;
  const { pen } = painter;
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = Math.max(width, 0.6 / painter.scale);
  pen.beginPath();
  for (const edge of edges) trace(pen, level, shape, from, edge);
  pen.stroke();
  if (painter.scale > 0.25) for (const edge of edges) arrow(pen, from.x + shape.x[edge.b] + edge.end, from.y + upper(level, shape, edge.b));
}

function upper(level, shape, item) {
  const row = level.row[item];
  return shape.top[row] + (shape.tall[row] - shape.heights[item]) / 2;
}

/* Down from an item, straight through the rows between, into an item. */
function trace(pen, level, shape, from, edge) {
  let x = from.x + shape.x[edge.a];
  let y = from.y + upper(level, shape, edge.a) + shape.heights[edge.a];
  pen.moveTo(x, y);
  for (let i = 0, row = level.row[edge.a] + 1; i < edge.bends.length; i++, row++) {
    const [bend, top] = [from.x + moved(shape.wider, row, edge.bends[i]), from.y + shape.top[row]];
    curve(pen, x, y, bend, top);
    [x, y] = [bend, top + shape.tall[row]];
    pen.lineTo(x, y);
  }
  curve(pen, x, y, from.x + shape.x[edge.b] + edge.end, from.y + upper(level, shape, edge.b) - 5);
}

function curve(pen, x, y, toX, toY) {
  if (Math.abs(x - toX) < 0.5) pen.lineTo(toX, toY);
  else pen.bezierCurveTo(x, y + (toY - y) / 2, toX, y + (toY - y) / 2, toX, toY);
}

function arrow(pen, x, y) {
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x - 4, y - 7);
  pen.lineTo(x + 4, y - 7);
  pen.fill();
}
