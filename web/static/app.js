// The dashboard's only script: theme, keys, readouts of charts, and news from the server. Pages work without it.
"use strict";

const root = document.documentElement;
const themes = ["system", "light", "dark"];
let theme = "system";
try { theme = localStorage.getItem("theme") || "system"; } catch { /* no storage: the system's wish */ }

function applyTheme() {
  if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
  const button = document.getElementById("theme");
  if (button) {
    button.textContent = { system: "◐", light: "○", dark: "●" }[theme];
    button.setAttribute("aria-label", "Colours: " + theme + ". Change");
    button.title = "Colours: " + theme + " (t)";
  }
}
applyTheme();

function nextTheme() {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  try { localStorage.setItem("theme", theme); } catch { /* it holds for this page */ }
  applyTheme();
}

// --- charts: the values under the pointer, or under the arrow keys

function chartLines(svg) {
  return [...svg.querySelectorAll("path[data-ys]")].map(p => ({
    name: p.dataset.name, unit: p.dataset.unit ?? svg.dataset.unit,
    xs: p.dataset.xs.split(","), ys: p.dataset.ys.split(","), px: p.dataset.px.split(",").map(Number),
  }));
}

function showAt(svg, lines, px) {
  let at = null;
  for (const l of lines) for (const x of l.px) if (at === null || Math.abs(x - px) < Math.abs(at - px)) at = x;
  if (at === null) return;
  svg._at = at;
  const cursor = svg.querySelector(".cursor"), line = cursor.firstElementChild;
  line.setAttribute("x1", at); line.setAttribute("x2", at);
  cursor.setAttribute("visibility", "visible");
  let label = "", parts = [];
  for (const l of lines) {
    const i = l.px.indexOf(at);
    if (i < 0 || l.ys[i] === "") continue;
    label = svg.dataset.x + " " + Math.round(Number(l.xs[i]) * 10) / 10;
    parts.push((lines.length > 1 ? l.name + " " : "") + Number(Number(l.ys[i]).toPrecision(3)) + (l.unit === "%" ? " %" : ""));
  }
  const out = svg.parentElement.querySelector(".readout");
  if (out) out.textContent = [label, ...parts].join(" · ");
}

function hide(svg) {
  const cursor = svg.querySelector(".cursor");
  if (cursor) cursor.setAttribute("visibility", "hidden");
  const out = svg.parentElement.querySelector(".readout");
  if (out) out.textContent = "";
  delete svg._at;
}

function chartOf(e) { return e.target instanceof Element ? e.target.closest("svg.chart[data-x]") : null; }

function look(e) {
  const svg = chartOf(e);
  for (const other of document.querySelectorAll("svg.chart[data-x]")) if (other !== svg && other._at !== undefined && other !== document.activeElement) hide(other);
  if (!svg) return;
  const box = svg.getBoundingClientRect();
  showAt(svg, chartLines(svg), (e.clientX - box.left) / box.width * svg.viewBox.baseVal.width);
}
document.addEventListener("pointermove", look);
document.addEventListener("pointerdown", look); // a finger does not move first
document.addEventListener("focusout", e => { const svg = chartOf(e); if (svg) hide(svg); });

function moveCursor(svg, by) {
  const lines = chartLines(svg), all = [...new Set(lines.flatMap(l => l.px))].sort((a, b) => a - b);
  if (!all.length) return;
  const i = svg._at === undefined ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, all.indexOf(svg._at) + by));
  showAt(svg, lines, all[i]);
}

// --- keys

function help() {
  const d = document.getElementById("keys");
  if (d.open) d.close(); else d.showModal();
}

document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select, textarea")) return;
  const svg = chartOf(e);
  if (svg && (e.key === "ArrowLeft" || e.key === "ArrowRight")) { moveCursor(svg, e.key === "ArrowRight" ? 1 : -1); e.preventDefault(); return; }
  if (svg && e.key === "Escape") { hide(svg); return; }
  const link = rel => document.querySelector("link[rel=" + rel + "]");
  const go = l => { if (l) location.href = l.href; };
  const tab = n => go(document.querySelectorAll(".tabs a")[n]);
  switch (e.key) {
    case "j": go(link("next")); break;
    case "k": go(link("prev")); break;
    case "t": nextTheme(); break;
    case "?": help(); break;
    case "h": go(document.querySelector(".brand")); break;
    case "1": case "2": case "3": case "4": case "5": case "6": tab(Number(e.key) - 1); break;
    default: return;
  }
  e.preventDefault();
});

// --- buttons

document.addEventListener("click", async e => {
  const b = e.target.closest("button");
  if (!b) return;
  if (b.id === "theme") nextTheme();
  if (b.id === "help") help();
  if (b.dataset.close !== undefined) b.closest("dialog").close();
  if (b.dataset.copy !== undefined) {
    try { await navigator.clipboard.writeText(b.parentElement.querySelector("code").textContent); b.textContent = "Copied"; } catch { b.textContent = "Select it"; }
  }
});

// --- news: the server says that something was recorded, and the page is asked for again

let busy = false, again = false;

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.ok) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of fresh.querySelectorAll("[data-live]")) replace(document.getElementById(part.id), part);
    }
  } catch { /* the server is gone: the stream says so */ }
  busy = false;
  if (again) { again = false; refresh(); }
}

function replace(old, fresh) {
  if (!old || old.innerHTML === fresh.innerHTML) return;
  const open = new Set([...old.querySelectorAll("details[open][id]")].map(d => d.id));
  const checked = new Set([...old.querySelectorAll("input:checked")].map(i => i.value));
  const focus = old.contains(document.activeElement) ? [...old.querySelectorAll("a, button, input, select, summary, [tabindex]")].indexOf(document.activeElement) : -1;
  old.replaceChildren(...fresh.childNodes);
  for (const d of old.querySelectorAll("details[id]")) if (open.has(d.id)) d.open = true;
  for (const i of old.querySelectorAll("input[type=checkbox]")) i.checked = checked.has(i.value);
  if (focus >= 0) old.querySelectorAll("a, button, input, select, summary, [tabindex]")[focus]?.focus({ preventScroll: true });
  root.dataset.updates = Number(root.dataset.updates || 0) + 1;
}

function listen() {
  const status = document.getElementById("live"), run = document.body.dataset.run;
  const news = new EventSource("/events" + (run ? "?run=" + encodeURIComponent(run) : ""));
  news.addEventListener("open", () => { status.textContent = ""; root.dataset.stream = "open"; });
  news.addEventListener("change", () => { refresh(); });
  news.addEventListener("progress", e => { status.textContent = JSON.parse(e.data); });
  news.addEventListener("error", () => { status.textContent = "not connected"; });
  window.addEventListener("pagehide", () => news.close());
}

document.addEventListener("DOMContentLoaded", () => {
  applyTheme();
  document.querySelector(".tabs [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
  if (document.querySelector("[data-live]")) listen();
});
