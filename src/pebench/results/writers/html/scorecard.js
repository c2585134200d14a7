
const weights = [...document.querySelectorAll(".weights input")];
const conditions = [...document.querySelectorAll(".conditions input")];
const card = document.querySelector("#card table");

function lines() {
  return card ? [...card.tBodies[0].querySelectorAll("tr:not(.family)")] : [];
}

/* The mean of a row's scores by the reader's weights; null where a column that counts has none, or all were refused. */
function weighed(row) {
  let sum = 0, whole = 0, measured = false;
  for (const slider of weights) {
    const weight = Number(slider.value);
    if (!weight) continue;
    const {score, value} = row.querySelector(`[data-key="${slider.name}"]`).dataset;
    if (score === "") return null;
    measured ||= value !== "";
    sum += weight * Number(score);
    whole += weight;
  }
  return measured ? (100 * sum) / whole : null;
}

function rank() {
  for (const slider of weights) slider.closest("label").querySelector("output").textContent = slider.value;
  for (const row of weights.length ? lines() : []) {
    const cell = row.querySelector(".weighed"), value = weighed(row);
    cell.textContent = value === null ? "–" : value.toFixed(1);
    cell.dataset.value = value === null ? "" : value;
  }
  const weightless = weights.length && weights.every((slider) => !Number(slider.value));
  const output = document.getElementById("weightless");
  if (output) output.textContent = weightless ? "All weights are 0, so that no encoding has a score." : "";
  narrow();
}

/* Rows that neither a condition nor the words hide; one count of both. */
function narrow() {
  const wanted = conditions.filter((box) => box.checked).map((box) => box.name);
  let shown = 0;
  for (const row of lines()) {
    const tags = row.dataset.tags.split(" ");
    if (weights.length && row.querySelector(".weighed").dataset.value !== "") tags.push("measured");
    const out = wanted.some((name) => !tags.includes(name));
    row.classList.toggle("ruled-out", out);
    shown += !out && !row.hidden;
  }
  document.getElementById("shown").textContent = `${shown} of ${lines().length} encodings shown.`;
}

function sortByScore() {
  const header = card.tHead.querySelector(".weighed");
  header.ariaSort = null;
  sort(header);
}

if (card) {
  for (const slider of weights) {
    slider.addEventListener("input", () => {
      rank();
      sortByScore();
    });
  }
  for (const box of conditions) box.addEventListener("change", narrow);
  form.addEventListener("input", narrow); // after page.js, which hides rows by words
  document.documentElement.classList.add("scripted");
  document.getElementById("choose").hidden = false;
  rank();
  if (weights.length) sortByScore();
}
