// The list of samples: search, sort, more lines. Lines with values are on the page already; those
// of the other samples are made from text when they come in sight.
(() => {
  const list = document.querySelector(".samples");
  if (!list) return;
  const heads = list.dataset.heads.split(","), STEP = 6;
  const rest = list.querySelector(".rest"), more = list.querySelector("details.more");
  const made = (fields) => {
    const node = document.createElement("details"), line = node.appendChild(document.createElement("summary"));
    node.className = "sample";
    line.className = "line";
    for (const field of fields) line.appendChild(document.createElement("span")).textContent = field;
    node.appendChild(document.createElement("p")).textContent =
      "Values are on this page for the most uncertain samples only; vedute impute gives those of all.";
    return node;
  };
  const entries = [...list.querySelectorAll(".sample")].map((node) => ({
    node, fields: [...node.firstChild.children].map((span) => span.textContent),
  }));
  if (rest)
    for (const line of rest.querySelector("pre").textContent.split("\n")) entries.push({ node: null, fields: line.split("\t") });
  for (const e of entries) e.words = e.fields.map((f, i) => heads[i] + " " + f).join("\n").toLowerCase();
  const box = document.createElement("div");
  for (const e of entries) if (e.node) e.node.remove();
  if (more) more.remove();
  if (rest) rest.remove();

  // A field to search in, and the number of matches.
  const bar = document.createElement("div"), field = document.createElement("input"), count = document.createElement("span");
  bar.className = "finder";
  Object.assign(field, { type: "search", placeholder: "Search by name, cluster or missing view", autocomplete: "off", spellcheck: false });
  field.setAttribute("aria-label", field.placeholder);
  count.setAttribute("role", "status");
  bar.append(field, count);
  list.prepend(bar);
  list.append(box);
  const button = list.appendChild(document.createElement("button"));
  button.type = "button";
  button.className = "further";

  let matches = entries, shown = STEP, by = null, down = false;
  const show = () => {
    box.replaceChildren(...matches.slice(0, shown).map((e) => (e.node = e.node || made(e.fields))));
    if (!matches.length) {
      const none = box.appendChild(document.createElement("p"));
      none.className = "hint";
      none.textContent = `No sample matches “${field.value}”. Search by name, by cluster (cluster 3) or by a missing view (missing scan).`;
    }
    const n = entries.length.toLocaleString("en").replaceAll(",", "\u202f");
    count.textContent = matches.length === entries.length ? `${n} samples` : `${matches.length} of ${n}`;
    button.hidden = matches.length <= shown;
    button.textContent = `Show ${Math.min(5 * STEP, matches.length - shown)} more`;
  };
  const value = (e) => {
    const word = e.fields[by], number = parseFloat(word.replace(/\u202f/g, "").replace("−", "-"));
    return Number.isNaN(number) ? (word === "–" ? -1 : word) : number;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
  const search = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    matches = words.length ? entries.filter((e) => words.every((w) => e.words.includes(w))) : entries.slice();
    if (by !== null) {
      const keyed = matches.map((e) => [value(e), e]);
      keyed.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
      matches = keyed.map((pair) => pair[1]);
    }
    shown = STEP;
    show();
  };
  field.addEventListener("input", search);
  button.addEventListener("click", () => { shown += 5 * STEP; show(); });
  const buttons = [...list.querySelectorAll(".heads button")];
  buttons.forEach((head, i) => {
    head.title = "Sort by this; click again to reverse";
    head.addEventListener("click", () => {
      down = by === i ? !down : heads[i] === "uncertainty";
      by = i;
      buttons.forEach((b) => b.removeAttribute("data-sorted"));
      head.dataset.sorted = down ? "down" : "up";
      search();
    });
  });

  // A near sample is looked up by its name; arrows go from line to line.
  box.addEventListener("click", (e) => {
    if (!e.target.matches(".near button")) return;
    const name = e.target.textContent;
    field.value = name;
    search();
    const first = matches.findIndex((entry) => entry.fields[0] === name);
    if (first > 0) matches.unshift(matches.splice(first, 1)[0]);
    show();
    if (matches.length) matches[0].node.open = true;
    field.scrollIntoView({ block: "nearest" });
  });
  box.addEventListener("keydown", (e) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[e.key];
    const other = step && e.target.matches("summary") && e.target.parentNode[step];
    if (!other) return;
    e.preventDefault();
    other.firstChild.focus();
  });
  show();
})();
