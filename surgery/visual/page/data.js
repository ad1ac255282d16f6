const NODE = 0, RUN = 1, INPUT = 2, OUTPUT = 3, PORT_IN = 4, PORT_OUT = 5;

async function readDocument() {
  const text = document.getElementById("data").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/* The model by number: what the index says, with the ways between nodes and tensors worked out here. */
class Model {
  constructor(given) {
    this.given = given;
    this.nodes = given.nodes;
    this.tensors = given.tensors;
    this.scopes = given.scopes;
    this.count = given.nodes.name.length;
    this.at = {};
    for (const name of ["inputs", "captures", "outputs", "attributes"]) this.at[name] = starts(given.nodes[name + "_n"]);
    this.initializer = given.tensors.kinds.indexOf("initializer");
    this.isOutput = new Set(given.tensors.output);
    this.linkTensors();
    this.linkScopes();
    this.errorRow = new Int32Array(this.count).fill(-1);
    if (given.errors) given.errors.node.forEach((node, row) => { this.errorRow[node] = row; });
  }

  linkTensors() {
    const count = this.tensors.name.length;
    this.producer = new Int32Array(count).fill(-1);
    const readers = new Int32Array(count + 1);
    const reads = (node) => new Set([...this.list("inputs", node), ...this.list("captures", node)].filter((t) => t >= 0));
    for (let node = 0; node < this.count; node++) {
      for (const tensor of this.list("outputs", node)) {
        if (tensor >= 0 && this.producer[tensor] < 0) this.producer[tensor] = node;
      }
      for (const tensor of reads(node)) readers[tensor + 1]++;
    }
    for (let i = 0; i < count; i++) readers[i + 1] += readers[i];
    this.readersAt = readers;
    this.readers = new Int32Array(readers[count]);
    const next = readers.slice();
    for (let node = 0; node < this.count; node++) for (const tensor of reads(node)) this.readers[next[tensor]++] = node;
  }

  linkScopes() {
    this.members = this.scopes.map(() => []);
    this.position = new Int32Array(this.count);
    this.nodes.scope.forEach((scope, node) => { this.position[node] = this.members[scope].push(node) - 1; });
    this.bodies = new Map();
    this.functions = new Map();
    this.scopes.forEach((scope, number) => {
      if (scope.owner >= 0) this.bodies.set(scope.owner, [...(this.bodies.get(scope.owner) || []), number]);
      if (scope.kind === "function") this.functions.set(scope.name, number);
    });
  }

  list(name, node) { return this.nodes[name].slice(this.at[name][node], this.at[name][node + 1]); }
  op(node) { return this.nodes.ops[this.nodes.op[node]]; }
  family(node) { return this.nodes.family[this.nodes.op[node]]; }
  domain(node) { return this.nodes.domains[this.nodes.domain[node]]; }
  name(node) { return this.nodes.names[this.nodes.name[node]]; }
  label(node) { return this.name(node) || `#${node}`; }
  tensorName(tensor) { return this.tensors.names[this.tensors.name[tensor]]; }
  tensorType(tensor) {
    const [dtype, shape] = [this.tensors.dtypes[this.tensors.dtype[tensor]], this.tensors.shapes[this.tensors.shape[tensor]]];
    return dtype === "?" && shape === "?" ? "type not known" : `${dtype} ${shape}`;
  }
  consumers(tensor) { return this.readers.subarray(this.readersAt[tensor], this.readersAt[tensor + 1]); }
  /* What a node reads, weights left out: the order that ports count in. */
  reads(node) {
    const all = [...this.list("inputs", node), ...this.list("captures", node)];
    return all.filter((tensor) => tensor >= 0 && this.tensors.kind[tensor] !== this.initializer);
  }
  children(node) { return this.list("outputs", node).flatMap((tensor) => (tensor < 0 ? [] : Array.from(this.consumers(tensor)))); }
  parents(node) { return this.reads(node).map((tensor) => this.producer[tensor]).filter((maker) => maker >= 0); }

  /* The nodes on the ways between two nodes of a scope, both among them; none if no way leads from one to the other. */
  between(a, b) {
    const [first, last] = a < b ? [a, b] : [b, a];
    const within = (node) => node >= first && node <= last && this.nodes.scope[node] === this.nodes.scope[first];
    const below = reached(first, (node) => this.children(node).filter(within));
    if (!below.has(last)) return [];
    return [...reached(last, (node) => this.parents(node).filter((parent) => below.has(parent)))].sort((p, q) => p - q);
  }

  /* What nodes read from others, and what of theirs is read elsewhere or is an output of the graph. */
  border(nodes) {
    const inside = new Set(nodes);
    const inputs = new Set(nodes.flatMap((node) => this.reads(node)).filter((tensor) => !inside.has(this.producer[tensor])));
    const made = nodes.flatMap((node) => this.list("outputs", node)).filter((tensor) => tensor >= 0);
    const outputs = made.filter((tensor) => this.isOutput.has(tensor) || this.consumers(tensor).some((node) => !inside.has(node)));
    return [[...inputs], outputs];
  }

  called(node) {
    const domain = this.domain(node);
    return this.functions.get(domain ? `${domain}:${this.op(node)}` : this.op(node));
  }
  error(name, node) { return this.given.errors && this.errorRow[node] >= 0 ? this.given.errors[name][this.errorRow[node]] : null; }
}

function starts(lengths) {
  const at = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => { at[i + 1] = at[i] + length; });
  return at;
}

function reached(from, next) {
  const [seen, waiting] = [new Set([from]), [from]];
  while (waiting.length) {
    for (const node of next(waiting.pop())) {
      if (seen.has(node)) continue;
      seen.add(node);
      waiting.push(node);
    }
  }
  return seen;
}
