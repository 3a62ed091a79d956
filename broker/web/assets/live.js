// Asks for the page again every few seconds and puts the new content in place of the old.
// Without scripts the page is the same, and reloading does this.
"use strict";
const EVERY_MS = 5000;

async function refresh() {
  const live = document.querySelector("[data-live]");
  if (!live || document.hidden || live.contains(document.activeElement)) return;
  if (window.getSelection().toString()) return;
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
  live.replaceWith(next);
}

setInterval(refresh, EVERY_MS);
