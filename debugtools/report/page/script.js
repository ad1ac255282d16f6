"use strict";
// Rows are filtered and sorted; without a script the page is whole, only not so handy.
for (const form of document.querySelectorAll("form")) {
  const rows = [...document.getElementById(form.dataset.table).tBodies[0].rows];
  const told = form.querySelector("output");
  const show = () => {
    const text = form.elements.text.value.toLowerCase();
    const wanted = new Set([...form.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value));
    let left = 0;
    for (const row of rows) {
      row.hidden = !(wanted.has(row.dataset.outcome) && row.textContent.toLowerCase().includes(text));
      left += row.hidden ? 0 : 1;
    }
    told.textContent = `${left} of ${rows.length}`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show();
}
const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
for (const head of document.querySelectorAll("thead th")) {
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0], column = head.cellIndex;
    const sign = head.dataset.sorted === "down" ? 1 : -1;
    head.dataset.sorted = sign < 0 ? "down" : "up";
    const order = (a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      const both = x !== "" && y !== "" && !Number.isNaN(Number(x)) && !Number.isNaN(Number(y));
      return sign * (both ? Number(x) - Number(y) : x < y ? -1 : x > y ? 1 : 0);
    };
    body.append(...[...body.rows].sort(order));
  });
}
