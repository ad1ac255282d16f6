const METRICS = [
  ["rel_l2", "relative L2 error", -8, 0], ["max_abs", "largest absolute error", null, null], ["max_rel", "largest relative error", -8, 2],
  ["local", "local error (relative L2)", -8, 0], ["ampl", "amplification", -1, 4],
];
/* From exact to useless; light and dark each run from quiet to loud against their page. */
const SCALE = {
  light: ["#dbe9f4", "#a9d3d0", "#f2d96b", "#f19a3e", "#d2412f", "#7a0f3c"],
  dark: ["#24405a", "#2f6f73", "#8f8427", "#c9772a", "#e0503c", "#ff7fa8"],
};
const FAMILY = {
  light: ["#3d6fd1", "#2a8fa8", "#3f9a4d", "#8357c9", "#7d8794", "#b07d1e", "#aab2bd", "#c2548f", "#d9622b", "#5c6672"],
  dark: ["#6d9bf2", "#4fb9d1", "#69c277", "#ad8af0", "#8e98a6", "#d6a545", "#6c7683", "#e582b6", "#f08a55", "#98a2b0"],
};
const CAUSES = ["overflow", "nan", "leap"];
const BROKEN = { light: "#6a2bf0", dark: "#a98bff" };

/* What colour a node has, and which of several nodes is worst. */
class Colours {
  constructor(model) {
    this.model = model;
    this.errors = model.given.errors;
    this.metric = this.choices().length > 1 ? this.choices()[0][0] : "family";
    this.measure();
  }

  choices() {
    const known = (name) => this.errors && this.errors[name].some((value) => value !== null);
    return [...METRICS.filter(([name]) => known(name)).map(([name, text]) => [name, text]), ["family", "kind of operator"]];
  }

  choose(metric) {
    this.metric = metric;
    this.measure();
  }

  /* The span of the scale in decades, and per scope a tree to find the worst of a stretch of nodes. */
  measure() {
    this.trees = new Map();
    if (this.metric === "family") return;
    const [, , low, high] = METRICS.find(([name]) => name === this.metric);
    const values = this.errors[this.metric].filter((value) => typeof value === "number" && value > 0).map(Math.log10);
    const found = [values.reduce((a, b) => Math.min(a, b), 0), values.reduce((a, b) => Math.max(a, b), -8)];
    this.span = low === null ? [Math.floor(Math.max(found[0], found[1] - 12)), Math.ceil(found[1])] : [low, high];
    if (this.span[0] >= this.span[1]) this.span[0] = this.span[1] - 1;
  }

  /* 0 … 1 along the scale; 2 for what is not finite; null for what is not known. */
  place(node) {
    const value = this.model.error(this.metric, node);
    if (typeof value === "string") return 2;
    if (value === null) return broken(this.model.error("finding", node)) ? 2 : null;
    if (value <= 0) return 0;
    return Math.min(1, Math.max(0, (Math.log10(value) - this.span[0]) / (this.span[1] - this.span[0])));
  }

  node(node) {
    if (this.metric === "family") return FAMILY[theme()][this.model.family(node)];
    const place = this.place(node);
    return place === null ? null : this.at(place);
  }

  at(place) {
    if (place > 1) return BROKEN[theme()];
    const stops = SCALE[theme()];
    const at = place * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
    return mix(stops[i], stops[i + 1], at - i);
  }

  weight(node) {
    const place = this.metric === "family" ? null : this.place(node);
    const cause = CAUSES.includes(this.model.error("finding", node)) ? 1e-6 : 0;  // of equals, where it starts
    return (place === null ? -1 : place) + (this.model.error("passed", node) === false ? 4 : 0) + cause;
  }

  /* The worst node among positions first … last - 1 of a scope, -1 if nothing is known of them. */
  worst(scope, first, last) {
    if (this.metric === "family") return -1;
    const { weights, size, tree } = this.tree(scope);
    let best = -1;
    const before = (place) => weights[place] > weights[best] || (weights[place] === weights[best] && place < best);
    const take = (place) => { if (place >= 0 && (best < 0 || before(place))) best = place; };
    for (let [a, b] = [first + size, last + size]; a < b; a >>= 1, b >>= 1) {
      if (a & 1) take(tree[a++]);
      if (b & 1) take(tree[--b]);
    }
    return best >= 0 && weights[best] >= 0 ? this.model.members[scope][best] : -1;
  }

  tree(scope) {
    if (this.trees.has(scope)) return this.trees.get(scope);
    const members = this.model.members[scope];
    const weights = Float64Array.from(members, (node) => this.weight(node));
    let size = 1;
    while (size < members.length) size *= 2;
    const tree = new Int32Array(2 * size).fill(-1);
    members.forEach((_, place) => { tree[size + place] = place; });
    for (let i = size - 1; i > 0; i--) {
      const [a, b] = [tree[2 * i], tree[2 * i + 1]];
      tree[i] = b < 0 || (a >= 0 && weights[a] >= weights[b]) ? a : b;
    }
    this.trees.set(scope, { weights, size, tree });
    return this.trees.get(scope);
  }

  /* What is written on a node: ✗ fails, ✓ passes, – is not judged; then the number. */
  badge(node) {
    if (this.metric === "family" || this.model.errorRow[node] < 0) return "";
    return `${mark(this.model.error("passed", node))} ${figure(this.model.error(this.metric, node))}`;
  }
}

function broken(finding) { return finding === "nan" || finding === "overflow"; }
function mark(passed) { return passed === false ? "✗" : passed === true ? "✓" : "–"; }
function figure(value) {
  if (value === null) return "?";
  if (typeof value === "string") return value;
  return value === 0 ? "0" : value.toExponential(1);
}
function theme() { return document.documentElement.dataset.theme === "dark" ? "dark" : "light"; }

function rgb(hex) { return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)); }
function mix(a, b, part) {
  const [p, q] = [rgb(a), rgb(b)];
  return "#" + p.map((value, i) => Math.round(value + (q[i] - value) * part).toString(16).padStart(2, "0")).join("");
}
/* Black or white, whichever reads better on a colour. */
function inkOn(hex) {
  const [r, g, b] = rgb(hex).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19 ? "#101418" : "#ffffff";
}
