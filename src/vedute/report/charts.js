"use strict";
// Interaction with the map of samples: tooltips, a legend that shows and hides, pan and zoom.
// Without it the page reads the same: every mark has its <title>.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const NEAR = 22; // pixels from the pointer to a dot it may mean
  const make = (name, attributes, parent) => {
    const node = document.createElementNS(NS, name);
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    return parent.appendChild(node);
  };
  const clamp = (v, low, high) => Math.min(high, Math.max(low, v));
  document.documentElement.classList.add("live");

  // The tooltip.
  const tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  function showTip(words, x, y) {
    const [first, ...rest] = words.split("\n");
    const head = document.createElement("b");
    head.textContent = first;
    tip.replaceChildren(head, rest.join("\n"));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const over = y - box.height - 14;
    tip.style.left = clamp(x - box.width / 2, 6, innerWidth - box.width - 6) + "px";
    tip.style.top = (over > 6 ? over : y + 20) + "px";
  }
  const hideTip = () => { tip.hidden = true; };

  class Chart {
    constructor(svg) {
      this.svg = svg;
      this.marks = svg.querySelector(".marks");
      this.box = svg.dataset.box.split(" ").map(Number);
      this.ring = make("circle", { class: "ring", r: 7, visibility: "hidden" }, svg);
      this.dots = [];
      for (const title of svg.querySelectorAll("title")) {
        const mark = title.parentNode;
        mark.words = title.textContent;
        title.remove();
        const at = /^M(\S+) (\S+)h/.exec(mark.getAttribute("d") || "");
        if (at) this.dots.push({ mark, x: +at[1], y: +at[2] });
      }
      this.view = { kx: 1, ky: 1, tx: 0, ty: 0 };
      svg.addEventListener("pointermove", (e) => this.hover(e));
      svg.addEventListener("pointerleave", () => this.leave());
      this.zooms();
    }

    // Hover: the nearest dot, or what lies under the pointer.
    point(e) {
      const m = this.svg.getScreenCTM();
      return { x: (e.clientX - m.e) / m.a, y: (e.clientY - m.f) / m.d, scale: m.a };
    }
    place(dot) {
      const { kx, ky, tx, ty } = this.view;
      return { x: dot.x * kx + tx, y: dot.y * ky + ty };
    }
    hover(e) {
      if (this.drag) return;
      const p = this.point(e), [left, top, right, bottom] = this.box;
      let best = null, least = (NEAR / p.scale) ** 2;
      for (const dot of this.dots) {
        if (dot.mark.style.display === "none") continue;
        const at = this.place(dot), far = (at.x - p.x) ** 2 + (at.y - p.y) ** 2;
        const seen = at.x >= left - 4 && at.x <= right + 4 && at.y >= top - 4 && at.y <= bottom + 4;
        if (far < least && seen) { best = dot; least = far; }
      }
      if (best) {
        const at = this.place(best), m = this.svg.getScreenCTM();
        for (const [k, v] of [["cx", at.x], ["cy", at.y], ["visibility", "visible"]]) this.ring.setAttribute(k, v);
        showTip(best.mark.words, at.x * m.a + m.e, at.y * m.d + m.f);
        return;
      }
      this.ring.setAttribute("visibility", "hidden");
      e.target.words ? showTip(e.target.words, e.clientX, e.clientY) : hideTip();
    }
    leave() {
      this.ring.setAttribute("visibility", "hidden");
      hideTip();
    }

    // Pan and zoom: one transform of all marks.
    zooms() {
      const { svg } = this;
      svg.classList.add("zoom");
      svg.tabIndex = 0;
      svg.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
      svg.addEventListener("pointerdown", (e) => this.grab(e));
      svg.addEventListener("pointermove", (e) => this.pull(e));
      for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => this.drop());
      svg.addEventListener("dblclick", () => this.reset());
      svg.addEventListener("keydown", (e) => this.key(e));
      const tools = svg.parentNode.appendChild(document.createElement("div"));
      tools.className = "tools";
      const buttons = [["+", "Zoom in (or Ctrl and the wheel)", () => this.zoom(1.5)],
        ["−", "Zoom out", () => this.zoom(1 / 1.5)], ["⟲", "Show all (or double-click)", () => this.reset()]];
      for (const [word, title, act] of buttons) {
        const button = tools.appendChild(document.createElement("button"));
        Object.assign(button, { type: "button", textContent: word, title, onclick: act });
        button.setAttribute("aria-label", title);
      }
    }
    middle() {
      const [left, top, right, bottom] = this.box;
      return { x: (left + right) / 2, y: (top + bottom) / 2 };
    }
    zoom(factor, at = this.middle()) {
      const v = this.view, k = clamp(v.kx * factor, 1, 60) / v.kx;
      this.show({ kx: v.kx * k, ky: v.ky * k, tx: at.x - k * (at.x - v.tx), ty: at.y - k * (at.y - v.ty) });
    }
    reset() { this.show({ kx: 1, ky: 1, tx: 0, ty: 0 }); }
    show({ kx, ky, tx, ty }) {
      const [left, top, right, bottom] = this.box;
      this.view = { kx, ky, tx: clamp(tx, right * (1 - kx), left * (1 - kx)), ty: clamp(ty, bottom * (1 - ky), top * (1 - ky)) };
      const v = this.view;
      this.marks.setAttribute("transform", kx === 1 ? "" : `matrix(${v.kx} 0 0 ${v.ky} ${v.tx} ${v.ty})`);
      this.leave();
    }
    wheel(e) {
      if (!e.ctrlKey && !e.metaKey && document.activeElement !== this.svg) return; // the page scrolls
      e.preventDefault();
      this.zoom(Math.exp(-clamp(e.deltaY, -60, 60) / 160), this.point(e));
    }
    grab(e) {
      if (e.button || this.view.kx === 1) return;
      this.drag = { at: this.point(e), view: this.view };
      this.svg.setPointerCapture(e.pointerId);
      this.svg.classList.add("held");
      this.leave();
    }
    pull(e) {
      if (!this.drag) return;
      const p = this.point(e), { at, view } = this.drag;
      this.show({ ...view, tx: view.tx + p.x - at.x, ty: view.ty + p.y - at.y });
    }
    drop() {
      this.drag = null;
      this.svg.classList.remove("held");
    }
    key(e) {
      const v = this.view, step = 40;
      const acts = {
        "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), 0: () => this.reset(),
        Escape: () => { this.reset(); this.svg.blur(); },
        ArrowLeft: () => this.show({ ...v, tx: v.tx + step }), ArrowRight: () => this.show({ ...v, tx: v.tx - step }),
        ArrowUp: () => this.show({ ...v, ty: v.ty + step }), ArrowDown: () => this.show({ ...v, ty: v.ty - step }),
      };
      if (!acts[e.key] || e.ctrlKey || e.metaKey || (v.kx === 1 && e.key.startsWith("Arrow"))) return;
      e.preventDefault();
      acts[e.key]();
    }
  }

  // The legend: a click shows or hides a series, a double click shows it alone.
  function legends(figure) {
    const buttons = [...figure.querySelectorAll(".legend button")];
    const set = (button, on) => {
      button.setAttribute("aria-pressed", on);
      for (const mark of figure.querySelectorAll(`svg .${button.dataset.series}`)) mark.style.display = on ? "" : "none";
    };
    for (const button of buttons) {
      const others = buttons.filter((b) => b !== button && b.parentNode === button.parentNode);
      button.title = "Click to show or hide, double-click to see it alone";
      button.addEventListener("click", () => set(button, button.getAttribute("aria-pressed") === "false"));
      button.addEventListener("dblclick", () => {
        const alone = others.every((b) => b.getAttribute("aria-pressed") === "false");
        set(button, true);
        for (const b of others) set(b, alone);
      });
    }
    for (const radio of figure.querySelectorAll("input[type=radio]"))
      radio.addEventListener("change", () => { for (const b of buttons) set(b, true); });
  }

  // Color by a feature: a digit per dot is its shade, 9 is missing.
  function paints(select) {
    const figure = select.closest("figure"), dots = [...figure.querySelectorAll("svg .dot")], SHADES = 9;
    const shade = (word, k, n) => (word === "categories" ? `var(--k${k})` : `var(--r${Math.round((8 * k) / Math.max(n - 1, 1))})`);
    const key = figure.insertBefore(document.createElement("div"), select.nextSibling);
    key.className = "legend painted";
    const paint = () => {
      const { value } = select, words = (select.selectedOptions[0].dataset.words || "").split("|");
      const numbers = words.length === 3 && words.every((w) => w !== "" && !Number.isNaN(Number(w)));
      const kind = numbers ? "numbers" : "categories", n = numbers ? SHADES : words.length;
      figure.classList.toggle("by-feature", value !== "");
      dots.forEach((dot, i) => {
        const k = +value[i];
        dot.style.setProperty("--c", k === SHADES ? "var(--line)" : shade(kind, k, n));
        if (value === "") dot.style.removeProperty("--c");
      });
      const entry = (color, word) => {
        const span = document.createElement("span"), mark = span.appendChild(document.createElement("i"));
        mark.style.setProperty("--c", color);
        span.append(word);
        return span;
      };
      const shown = numbers ? words.map((w, i) => entry(shade(kind, 4 * i, n), w)) : words.map((w, i) => entry(shade(kind, i, n), w));
      key.replaceChildren(...(value === "" ? [] : [...shown, entry("var(--line)", "missing")]));
    };
    select.hidden = false;
    select.addEventListener("change", paint);
    for (const radio of figure.querySelectorAll("input[type=radio]"))
      radio.addEventListener("change", () => { select.value = ""; paint(); });
  }

  for (const svg of document.querySelectorAll("svg.plot")) new Chart(svg);
  for (const select of document.querySelectorAll("select.paint")) paints(select);
  for (const when of ["beforeprint", "afterprint"])
    addEventListener(when, () => { for (const d of document.querySelectorAll("details.fold")) d.open = when === "beforeprint"; });
  for (const figure of document.querySelectorAll("figure")) legends(figure);
  addEventListener("scroll", hideTip, { passive: true });

  // The section in view, in the table of contents.
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) links.get(e.target.id).classList.toggle("here", e.isIntersecting);
  }, { rootMargin: "-45% 0px -54% 0px" });
  for (const part of document.querySelectorAll("section")) seen.observe(part);
})();
