// The page of one query's text: its editor, what is wrong with it, and its form.
import { apply, ask, edit, replace } from "./editor.js";
import { trial } from "./trial.js";

const form = document.querySelector("#edit");
const said = document.querySelector("#diagnostics");
const id = () => form.elements.id?.value.trim() || decodeURIComponent(form.getAttribute("action").split("/")[2] || "");

const attempt = trial(document.querySelector("#trial"), { id, make: (change, hasFocus) => apply(view, change, hasFocus) });
const view = edit(form.elements.text, { id, checked: show, changed: attempt.stop });
form.elements.id?.addEventListener("change", () => view.dispatch({}));
document.body.classList.add("has-scripts");
if (!form.elements.text.value.trim()) attempt.readAhead();

function show(found, text = "", parameters = []) {
  said.replaceChildren();
  if (text.trim() && !found.some((each) => each.severity === "error")) attempt.start(text, parameters);
  if (!found.length) return;
  const list = document.createElement("ul");
  for (const each of found) {
    const line = [...text].slice(0, each.start).filter((character) => character === "\n").length + 1;
    const item = document.createElement("li");
    item.className = each.severity;
    item.textContent = `Line ${line}: ${each.message}${each.hint ? ` (${each.hint})` : ""} `;
    for (const fix of each.fixes) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = fix.title.replaceAll("`", "");
      button.addEventListener("click", () => apply(view, fix));
      item.append(button);
    }
    list.append(item);
  }
  said.append(list);
}

const format = document.querySelector("#format");
format.hidden = false;
format.addEventListener("click", async () => {
  const text = view.state.doc.toString();
  const answer = await ask("/v1/language/format", { body: text });
  if (answer.ok) replace(view, (await answer.json()).text);
  view.focus();
});
