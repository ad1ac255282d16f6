/* Which runs and blocks are open. A key is a scope's number, then /RUN and :BLOCK for each step inside. */
class Folds {
  constructor(open) { this.setAll(open); }

  setAll(open) {
    this.open = open;
    this.flipped = new Set();
    this.below = new Map();
  }

  isOpen(key) { return this.flipped.has(key) !== this.open; }

  /* Whether anything at or inside of a key is not as all are. */
  touched(key) { return this.below.has(key); }

  set(key, open) {
    if (this.isOpen(key) === open) return;
    const step = this.flipped.has(key) ? -1 : 1;
    if (step > 0) this.flipped.add(key); else this.flipped.delete(key);
    for (let at = key; at !== null; at = outer(at)) {
      const count = (this.below.get(at) || 0) + step;
      if (count) this.below.set(at, count); else this.below.delete(at);
    }
  }
}

function outer(key) {
  const cut = Math.max(key.lastIndexOf("/"), key.lastIndexOf(":"));
  return cut < 0 ? null : key.slice(0, cut);
}
