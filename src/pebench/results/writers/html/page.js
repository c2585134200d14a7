"use strict";

function key(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value === undefined) return cell.textContent;
  return cell.dataset.value === "" ? null : Number(cell.dataset.value);
}

function sort(header) {
  const first = header.dataset.first ?? "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const direction = header.ariaSort === first ? other : first;
  for (const cell of header.parentElement.cells) cell.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  const body = header.closest("table").tBodies[0];
  for (const family of body.querySelectorAll(".family")) family.remove(); // its rows stand together no longer
  const rows = Array.from(body.rows, (row) => [key(row, header.cellIndex), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null); // what is missing comes last
    return sign * ((a > b) - (a < b));
  });
  for (const [, row] of rows) body.append(row);
}

function filter(form) {
  const words = form.elements.words.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const rows = document.querySelectorAll("tbody tr:not(.family, #quality tr)"); // rows there are no encodings alone
  for (const family of document.querySelectorAll(".family")) family.hidden = words.length > 0;
  let shown = 0;
  for (const row of rows) {
    const label = row.cells[0].textContent.toLowerCase();
    row.hidden = words.length > 0 && !words.some((word) => label.includes(word));
    shown += !row.hidden;
  }
  form.querySelector("output").textContent = words.length ? `${shown} of ${rows.length} rows shown` : "";
}

function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
}

const folded = [];
window.addEventListener("beforeprint", () => {
  folded.push(...document.querySelectorAll("details:not([open])"));
  for (const part of folded) part.open = true; // paper shows all
});
window.addEventListener("afterprint", () => {
  for (const part of folded.splice(0)) part.open = false;
});
window.addEventListener("hashchange", unfold);
unfold();

for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sort(button.parentElement));
}
const form = document.getElementById("filter");
form.addEventListener("input", () => filter(form));
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
