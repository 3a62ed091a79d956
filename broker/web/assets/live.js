// Puts new content in place of the old whenever the broker says that there may be some; where it
// tells nothing, asks every few seconds.  Without scripts the page is the same, and reloading does
// this.
"use strict";
const EVERY_MS = 5000;
const STOPPED = "xscl-stopped";
let source = null;
let timer = null;
let isAsking = false;

async function refresh() {
  const live = document.querySelector("[data-live]");
  if (!live || document.hidden || isAsking) return;
  const selection = window.getSelection();
  const isReading = !selection.isCollapsed && live.contains(selection.anchorNode);
  document.body.classList.toggle("paused", isReading);
  if (isReading) return;
  isAsking = true;
  try {
    await replace(live);
  } finally {
    isAsking = false;
  }
}

async function replace(live) {
  let answer;
  try {
    answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
  } catch {
    document.body.classList.add("stale");
    return;
  }
  if (answer.status === 401) return location.reload();
  if (!answer.ok) return document.body.classList.add("stale");
  document.body.classList.remove("stale");
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const next = page.querySelector("[data-live]");
  if (!next || isStopped()) return;
  for (const open of live.querySelectorAll("details[open][id]")) {
    const same = next.querySelector("#" + CSS.escape(open.id));
    if (same) same.open = true;
  }
  const focused = placeOf(live);
  live.replaceWith(next);
  if (focused) focused(next)?.focus({ preventScroll: true });
}

// Returns how to find again what has the focus: what it opens, where it leads, or which one it is.
function placeOf(live) {
  const element = document.activeElement;
  if (!live.contains(element)) return null;
  const id = element.closest("[id]").id;
  if (element.matches("summary")) return (next) => next.querySelector("#" + CSS.escape(id) + " > summary");
  const kind = element.matches("a") ? "a" : "[tabindex]";
  const same = (each) => each.closest("[id]").id === id;
  const at = [...live.querySelectorAll(kind)].filter(same).indexOf(element);
  return (next) => [...next.querySelectorAll(kind)].filter((each) => each.closest("[id]")?.id === id)[at];
}

function isStopped() {
  return sessionStorage.getItem(STOPPED) !== null;
}

// Follows what is told while someone looks, and nothing otherwise.
function follow() {
  source?.close();
  clearInterval(timer);
  source = null;
  if (document.hidden || isStopped()) return;
  source = new EventSource("/live");
  source.addEventListener("change", refresh);
  source.addEventListener("error", ({ target }) => {
    if (target !== source) return;
    refresh();
    clearInterval(timer);
    if (target.readyState === EventSource.CLOSED) timer = setInterval(refresh, EVERY_MS);
  });
}

function begin() {
  if (!document.querySelector("[data-live]")) return;
  const button = document.getElementById("stop");
  const show = () => (button.textContent = isStopped() ? "Go on moving" : "Stop moving");
  button.hidden = false;
  show();
  button.addEventListener("click", () => {
    if (isStopped()) sessionStorage.removeItem(STOPPED);
    else sessionStorage.setItem(STOPPED, "");
    show();
    follow();
    if (!isStopped()) refresh();
  });
  document.addEventListener("visibilitychange", () => {
    follow();
    if (!isStopped()) refresh();
  });
  follow();
}

begin();
