"use strict";
// Interaction with the charts: tooltips, legends that show and hide, pan and zoom. No library.
// Without it the page reads the same: every mark already has its <title>, every chart its axes.
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

  // Ticks while zoomed; those of the whole chart are drawn already.
  function number(v) {
    if (Math.abs(v) < 1e-12) return "0";
    const words = Math.abs(v) >= 1000
      ? Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f")
      : String(+v.toPrecision(3));
    return words.replace("-", "−");
  }
  function ticks({ low, high, log, percent, most }) {
    const values = [];
    if (log && high / low > 8) {
      const a = Math.floor(Math.log10(low)), b = Math.ceil(Math.log10(high));
      for (let p = a; p <= b; p++)
        for (const m of high / low < 160 ? [1, 2, 5] : [1]) values.push(m * 10 ** p);
    } else {
      const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
      const step = power * [1, 2, 5, 10].find((m) => m * power >= 0.999 * rough);
      for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) values.push(k * step);
    }
    const inside = values.filter((v) => v >= low - 1e-9 * (high - low) && v <= high + 1e-9 * (high - low));
    return inside.map((v) => [v, percent ? number(100 * v) + "\u202f%" : number(v)]);
  }

  class Chart {
    constructor(svg) {
      this.svg = svg;
      this.marks = svg.querySelector(".marks");
      this.box = svg.dataset.box.split(" ").map(Number);
      this.grid = svg.querySelector(".grid");
      this.drawn = this.grid ? [...this.grid.children] : [];
      this.ring = make("circle", { class: "ring", r: 7, visibility: "hidden" }, svg);
      this.dots = [];
      for (const title of svg.querySelectorAll("title")) {
        const mark = title.parentNode;
        mark.words = title.textContent;
        title.remove();
        const at = /^M(\S+) (\S+)h/.exec(mark.getAttribute("d") || "");
        if (at) this.dots.push({ mark, x: +at[1], y: +at[2], moves: this.marks.contains(mark) });
      }
      this.view = { kx: 1, ky: 1, tx: 0, ty: 0 };
      svg.addEventListener("pointermove", (e) => this.hover(e));
      svg.addEventListener("pointerleave", () => this.leave());
      if (svg.dataset.x) this.zooms();
    }

    // Hover: the nearest dot, or what lies under the pointer.
    point(e) {
      const m = this.svg.getScreenCTM();
      return { x: (e.clientX - m.e) / m.a, y: (e.clientY - m.f) / m.d, scale: m.a };
    }
    place(dot) {
      const { kx, ky, tx, ty } = dot.moves ? this.view : { kx: 1, ky: 1, tx: 0, ty: 0 };
      return { x: dot.x * kx + tx, y: dot.y * ky + ty };
    }
    hover(e) {
      if (this.drag) return;
      const p = this.point(e), [left, top, right, bottom] = this.box;
      let best = null, least = (NEAR / p.scale) ** 2;
      for (const dot of this.dots) {
        if (dot.mark.style.display === "none") continue;
        const at = this.place(dot), far = (at.x - p.x) ** 2 + (at.y - p.y) ** 2;
        const seen = !dot.moves || (at.x >= left - 4 && at.x <= right + 4 && at.y >= top - 4 && at.y <= bottom + 4);
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

    // Pan and zoom: one transform of all marks, and the ticks drawn anew.
    zooms() {
      const axis = (words) => {
        const [low, high, kind, percent, most] = words.split(" ");
        return { low: +low, high: +high, log: kind === "log", percent: percent === "1", most: +most };
      };
      this.x = axis(this.svg.dataset.x);
      this.y = axis(this.svg.dataset.y);
      const { svg } = this;
      svg.classList.add("zoom");
      svg.tabIndex = 0;
      svg.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
      svg.addEventListener("pointerdown", (e) => this.grab(e));
      svg.addEventListener("pointermove", (e) => this.pull(e));
      for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => this.drop());
      svg.addEventListener("dblclick", () => this.reset());
      svg.addEventListener("keydown", (e) => this.key(e));
      const home = svg.parentNode.matches("figure") ? svg.parentNode : svg.parentNode.insertBefore(document.createElement("div"), svg);
      if (home !== svg.parentNode) { home.className = "chart"; home.append(svg); }
      const tools = home.appendChild(document.createElement("div"));
      tools.className = "tools";
      const buttons = [["+", "Zoom in (or Ctrl and the wheel)", () => this.zoom(1.5)],
        ["−", "Zoom out", () => this.zoom(1 / 1.5)], ["⟲", "Show all (or double-click)", () => this.reset()]];
      for (const [word, title, act] of home.className === "chart" ? buttons.slice(2) : buttons) {
        const button = tools.appendChild(document.createElement("button"));
        Object.assign(button, { type: "button", textContent: word, title, onclick: act });
        button.setAttribute("aria-label", title);
      }
      this.tools = tools;
      tools.hidden = home.className === "chart";
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
      if (this.tools.parentNode.className === "chart") this.tools.hidden = kx === 1;
      if (this.grid) kx === 1 ? this.grid.replaceChildren(...this.drawn) : this.ticks();
      this.leave();
    }
    ticks() {
      const [left, top, right, bottom] = this.box, { kx, ky, tx, ty } = this.view;
      this.grid.replaceChildren();
      const draw = (axis, start, end, k, t, horizontal) => {
        const f = axis.log ? Math.log10 : (v) => v, back = axis.log ? (v) => 10 ** v : (v) => v;
        const low = f(axis.low), unit = (end - start) / (f(axis.high) - low);
        const value = (px) => back(low + ((px - t) / k - start) / unit);
        const span = { ...axis, low: value(start), high: value(end) };
        for (const [v, words] of ticks(span)) {
          const at = (start + (f(v) - low) * unit) * k + t;
          make("path", { d: horizontal ? `M${at} ${bottom}V${top}` : `M${left} ${at}H${right}` }, this.grid);
          const place = horizontal ? { x: at, y: bottom + 18, class: "mid" } : { x: left - 8, y: at, class: "end" };
          make("text", place, this.grid).textContent = words;
        }
      };
      draw(this.x, left, right, kx, tx, true);
      draw(this.y, bottom, top, ky, ty, false);
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

  // Legends: a click shows or hides a series, a double click shows it alone.
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

  for (const svg of document.querySelectorAll("svg.plot")) new Chart(svg);
  for (const figure of document.querySelectorAll("figure")) legends(figure);
  addEventListener("scroll", hideTip, { passive: true });

  // The section in view, in the table of contents.
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) links.get(e.target.id).classList.toggle("here", e.isIntersecting);
  }, { rootMargin: "-45% 0px -54% 0px" });
  for (const part of document.querySelectorAll("section")) seen.observe(part);
})();
