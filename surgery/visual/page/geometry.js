const ROW_GAP = 46, BLOCK_GAP = 24, PAD = 14, HEAD = 32, CHUNK = 8;
const BLOCK_SIZE = [208, 46];

/* Brings a level into a form that can be drawn: rows from left to right, edges by chunks of rows. */
function prepare(level) {
  if (level.rows) return level;
  level.rows = [];
  level.itemOf = new Map();
  level.kind.forEach((kind, item) => {
    (level.rows[level.row[item]] ||= []).push(item);
    if (kind === NODE) level.itemOf.set(level.ref[item], item);
  });
  level.rows.forEach((row) => row.sort((a, b) => level.x[a] - level.x[b]));
  level.runStarts = level.runs.map((run) => run.start);
  level.runItem = [];
  level.kind.forEach((kind, item) => { if (kind === RUN) level.runItem[level.ref[item]] = item; });
  level.edges = [];
  level.chunks = [];
  for (let i = 0; i < level.lines.length;) {
    const [a, b] = [level.lines[i], level.lines[i + 1]];
    const bends = level.lines.slice(i + 2, i + 1 + level.row[b] - level.row[a]);
    const edge = { a, b, bends, left: Math.min(level.x[a], level.x[b], ...bends), right: Math.max(level.x[a], level.x[b], ...bends) };
    i += 2 + bends.length;
    level.edges.push(edge);
    for (let c = Math.floor(level.row[a] / CHUNK); c <= Math.floor(level.row[b] / CHUNK); c++) (level.chunks[c] ||= []).push(edge);
  }
  spreadEnds(level);
  level.far = new Map();
  level.tags.forEach((item, i) => {  // from, to, from, to …: [how many come in, how many go out]
    if (!level.far.has(item)) level.far.set(item, [0, 0]);
    level.far.get(item)[i % 2 ? 0 : 1]++;
  });
  level.shapes = [null, null];
  return level;
}

/* Several edges into one item arrive side by side, in the order in which they come. */
function spreadEnds(level) {
  const into = new Map();
  for (const edge of level.edges) {
    if (!into.has(edge.b)) into.set(edge.b, []);
    into.get(edge.b).push(edge);
  }
  for (const edges of into.values()) {
    const from = (edge) => (edge.bends.length ? edge.bends[edge.bends.length - 1] : level.x[edge.a]);
    edges.sort((p, q) => from(p) - from(q));
    const step = Math.min(16, 120 / edges.length);
    edges.forEach((edge, i) => { edge.end = (i - (edges.length - 1) / 2) * step; });
  }
}

/* Sizes and places of a scope's parts as they are folded now. */
class Geometry {
  constructor(sizes, folds) {
    this.sizes = sizes;
    this.folds = folds;
    this.known = new Map();
  }

  forget() { this.known.clear(); }

  level(level, key) {
    prepare(level);
    const plain = !this.folds.touched(key);
    const known = plain ? level.shapes[+this.folds.open] : this.known.get(key);
    if (known) return known;
    const shape = this.measure(level, key);
    if (plain) level.shapes[+this.folds.open] = shape; else this.known.set(key, shape);
    return shape;
  }

  measure(level, key) {
    const count = level.kind.length;
    const w = new Float64Array(count), h = new Float64Array(count), x = Float64Array.from(level.x);
    const top = new Float64Array(level.rows.length + 1), tall = new Float64Array(level.rows.length);
    const wider = new Map();
    let [left, right] = [0, level.width];
    for (let item = 0; item < count; item++) {
      const [width, height] = this.sizes[level.kind[item]];
      const run = level.kind[item] === RUN ? this.run(level.runs[level.ref[item]], `${key}/${level.ref[item]}`) : null;
      [w[item], h[item]] = run ? [run.w, run.h] : [width, height];
      const row = level.row[item];
      tall[row] = Math.max(tall[row], h[item]);
      if (w[item] > width) wider.set(row, [...(wider.get(row) || []), [level.x[item], (w[item] - width) / 2]]);
    }
    for (let row = 0; row < tall.length; row++) top[row + 1] = top[row] + tall[row] + ROW_GAP;
    for (const row of wider.keys()) {
      for (const item of level.rows[row]) {
        x[item] = moved(wider, row, level.x[item]);
        left = Math.min(left, x[item] - w[item] / 2);
        right = Math.max(right, x[item] + w[item] / 2);
      }
    }
    return { x, w, top, tall, wider, heights: h, left, width: right - left, height: Math.max(0, top[tall.length] - ROW_GAP) };
  }

  run(run, key) {
    if (!this.folds.isOpen(key)) return { open: false, w: this.sizes[RUN][0], h: this.sizes[RUN][1] };
    const equal = !this.folds.touched(key);
    if (equal && run.shape) return run.shape;
    if (this.known.has(key)) return this.known.get(key);
    const tops = new Float64Array(run.count + 1);
    const blocks = [];
    let [w, y] = [this.sizes[RUN][0], HEAD];
    for (let k = 0; k < run.count; k++) {
      const block = equal && k ? blocks[0] : this.block(run, `${key}:${k}`);
      blocks.push(block);
      tops[k] = y;
      y += block.h + BLOCK_GAP;
      w = Math.max(w, block.w + 2 * PAD);
    }
    tops[run.count] = y;
    const shape = { open: true, w, h: y - BLOCK_GAP + PAD, tops, blocks };
    if (equal) run.shape = shape; else this.known.set(key, shape);
    return shape;
  }

  block(run, key) {
    if (!this.folds.isOpen(key)) return { open: false, w: BLOCK_SIZE[0], h: BLOCK_SIZE[1] };
    const inside = this.level(run.level, key);
    return { open: true, w: Math.max(BLOCK_SIZE[0], inside.width + 2 * PAD), h: HEAD + inside.height + PAD };
  }
}

/* Where an x of a row goes when items of the row are wider than when folded. */
function moved(wider, row, x) {
  for (const [centre, half] of wider.get(row) || []) x += Math.sign(x - centre) * half;
  return x;
}

/* The steps from a scope to the node at a position: {level, key, item} and, through runs, {run, runKey, block, blockKey}
   with the scope's position where the block starts. */
function stepsTo(level, key, position) {
  const steps = [];
  let start = 0;
  for (;;) {
    prepare(level);
    const item = level.itemOf.get(position);
    if (item !== undefined) return [...steps, { level, key, item }];
    const number = lastAtMost(level.runStarts, position);
    const run = level.runs[number];
    const block = Math.floor((position - run.start) / run.period);
    start += run.start + block * run.period;
    steps.push({ level, key, item: level.runItem[number], run, runKey: `${key}/${number}`, block, blockKey: `${key}/${number}:${block}`, start });
    position = (position - run.start) % run.period;
    [level, key] = [run.level, `${key}/${number}:${block}`];
  }
}

/* The last index whose value is at most `wanted`, in an ascending array. */
function lastAtMost(values, wanted, count = values.length) {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) low = middle + 1; else high = middle;
  }
  return Math.max(0, low - 1);
}
