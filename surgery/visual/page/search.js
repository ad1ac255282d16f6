const MOST_FOUND = 200;

/* The pane on the left: nodes whose operator, name or output has every word of the query in it. */
class Finder {
  constructor(app) {
    this.app = app;
    this.query = document.getElementById("query");
    this.list = document.getElementById("results");
    this.said = document.getElementById("found");
    this.found = [];
    this.at = -1;
    this.query.addEventListener("input", () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.search(), 60); });
    this.query.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { clearTimeout(this.timer); if (this.asked !== this.query.value) this.search(); this.step(event.shiftKey ? -1 : 1); }
      if (event.key === "Escape") { this.query.value = ""; this.search(); this.query.blur(); }
    });
    this.search();
  }

  search() {
    const { model } = this.app;
    this.asked = this.query.value;
    const words = this.asked.toLowerCase().split(/\s+/).filter(Boolean);
    this.low ||= [model.nodes.ops, model.nodes.names, model.tensors.names].map((texts) => texts.map((text) => text.toLowerCase()));
    const [ops, names, tensors] = this.low;
    const has = (node, word) => ops[model.nodes.op[node]].includes(word) || names[model.nodes.name[node]].includes(word)
      || model.list("outputs", node).some((tensor) => tensor >= 0 && tensors[model.tensors.name[tensor]].includes(word));
    this.found = [];
    for (let node = 0; node < model.count; node++) if (words.every((word) => has(node, word))) this.found.push(node);
    this.at = -1;
    this.show();
  }

  show() {
    const { model } = this.app;
    const shown = this.found.slice(0, MOST_FOUND);
    this.said.textContent = `${this.found.length.toLocaleString("en")} of ${model.count.toLocaleString("en")} nodes${this.found.length > MOST_FOUND ? `, the first ${MOST_FOUND} listed` : ""}`;
    this.rows = shown.map((node, place) => {
      const made = button("", () => { this.at = place; this.go(); });
      const badge = this.app.colours.badge(node);
      made.append(element("span", "", model.op(node)), element("span", model.error("passed", node) === false ? "bad" : "dim", badge ? `  ${badge}` : ""),
        element("span", "name", tail(model.label(node), 60)));
      return made;
    });
    this.list.replaceChildren(...this.rows.map((row) => element("li", "", row)));
  }

  step(by) {
    if (!this.found.length) return;
    this.at = (this.at + by + this.found.length) % this.found.length;
    this.go();
  }

  go() {
    this.rows.forEach((row, place) => row.classList.toggle("here", place === this.at));
    this.rows[this.at]?.scrollIntoView({ block: "nearest" });
    this.app.goTo(this.found[this.at]);
  }
}
