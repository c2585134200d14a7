/* Tables that sort by a click on a column's head, and those with a field that hides rows. */
const NUMBER = /^[+\-−]?[\d.,]+(e[+\-]?\d+)?/;

function value(row, column) {
  const text = row.cells[column].textContent.trim(), number = text.match(NUMBER);
  return number ? Number(number[0].replace("−", "-").replaceAll(",", "")) : text.toLowerCase();
}

function compare(a, b) {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1; // what is no number comes last
  return typeof a === "number" ? a - b : a.localeCompare(b);
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
      const rows = [...body.rows].sort((a, b) => order * compare(value(a, column), value(b, column)));
      body.append(...rows);
    });
  });
}

function filtered(box, table) {
  const label = document.createElement("label"), field = document.createElement("input");
  const shown = document.createElement("output");
  field.type = "search";
  field.placeholder = "words, such as rope lm";
  label.append("Show rows with ", field, " ", shown);
  box.prepend(label);
  const rows = [...table.tBodies[0].rows];
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    rows.forEach((row) => (row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word))));
    const left = rows.filter((row) => !row.hidden).length;
    shown.textContent = left < rows.length ? `${left} of ${rows.length} rows` : "";
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".sortable table").forEach(sortable);
  document.querySelectorAll(".filtered").forEach((box) => filtered(box, box.querySelector("table")));
});
