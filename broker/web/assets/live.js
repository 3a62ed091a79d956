// Asks for the page again every few seconds and puts the new content in place of the old.
// Without scripts the page is the same, and reloading does this.
"use strict";
const EVERY_MS = 5000;

async function refresh() {
  const live = document.querySelector("[data-live]");
  if (!live || document.hidden) return;
  const selection = window.getSelection();
  const isReading = !selection.isCollapsed && live.contains(selection.anchorNode);
  document.body.classList.toggle("paused", isReading);
  if (isReading) return;
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
  if (!next) return;
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

setInterval(refresh, EVERY_MS);
