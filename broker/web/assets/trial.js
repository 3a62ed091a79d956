// Shows what the text in the editor would have matched and just missed, on each pause of typing.
// What is typed next ends what is being asked.
import { ask } from "./editor.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 480;
const HEIGHT = 90;
const VALUED_AFTER_MS = 400;
const EXAMPLES = { duration: "6 hours", number: "3" };
const UNITS = [["day", 86400e6], ["hour", 3600e6], ["minute", 60e6], ["second", 1e6]];

export function trial(section, { id, make }) {
  const said = section.querySelector("#trial-said");
  const bounds = section.querySelector("#trial-bounds");
  const values = section.querySelector("#trial-values");
  const near = section.querySelector("#trial-near");
  const matches = section.querySelector("#trial-matches");
  const given = new Map(); // What was typed as the value of each parameter, of this text or one before.
  let asking = new AbortController();

  function stop() {
    asking.abort();
    section.classList.add("old");
  }

  async function start(text, parameters) {
    stop();
    fields(text, parameters);
    asking = new AbortController();
    const { signal } = asking;
    if (section.hidden || section.classList.contains("waits")) {
      said.textContent = "Looking…";
      section.classList.remove("old", "waits");
      near.hidden = matches.hidden = true;
    }
    section.hidden = false;
    const lacking = parameters.filter(({ name }) => !given.get(name)?.trim());
    if (lacking.length) return waitFor(lacking);
    const asked = new URLSearchParams(id() && { id: id() });
    if (parameters.length) asked.set("parameters", JSON.stringify(valued(parameters)));
    try {
      const answer = await ask(`/v1/language/trial?${asked}`, { body: text, signal });
      if (!answer.ok) return refused(await answer.json());
      for await (const line of lines(answer.body)) show(line);
    } catch (error) {
      if (error.name !== "AbortError") said.textContent = "The broker does not answer.";
    }
  }

  // Asks for the value of each parameter; fields stay while the parameters do.
  function fields(text, parameters) {
    values.hidden = !parameters.length;
    values.start = () => start(text, parameters);
    const of = JSON.stringify(parameters);
    if (values.dataset.of === of) return;
    values.dataset.of = of;
    values.replaceChildren(...parameters.map(field));
  }

  function field({ name, type }) {
    const [row, label, input] = ["p", "label", "input"].map((each) => document.createElement(each));
    label.textContent = `$${name}, a ${type}, to try it with`;
    label.htmlFor = input.id = `trial-value-${name}`;
    Object.assign(input, { autocomplete: "off", maxLength: 2000, placeholder: EXAMPLES[type] ?? "", value: given.get(name) ?? "" });
    let waiting;
    input.addEventListener("input", () => {
      given.set(name, input.value);
      clearTimeout(waiting);
      waiting = setTimeout(() => values.start(), VALUED_AFTER_MS);
    });
    row.append(label, input);
    return row;
  }

  function waitFor(lacking) {
    section.classList.remove("old");
    section.classList.add("waits");
    bounds.replaceChildren();
    near.hidden = matches.hidden = true;
    said.textContent = `Give ${lacking.map(({ name }) => `$${name}`).join(", ")} to see what it would have matched.`;
  }

  function valued(parameters) {
    const isNumber = ({ name, type }) => ["number", "value"].includes(type) && !Number.isNaN(Number(given.get(name)));
    return Object.fromEntries(parameters.map((each) => [each.name, isNumber(each) ? Number(given.get(each.name)) : given.get(each.name)]));
  }

  // Has the broker read the documents while the first words are typed.
  async function readAhead() {
    try {
      const answer = await ask("/v1/language/trial", { body: "", signal: asking.signal });
      if (answer.ok) for await (const _ of lines(answer.body));
    } catch {
      // The text asks for itself.
    }
  }

  function refused(problem) {
    section.hidden = false;
    said.textContent = `It cannot be tried: ${problem.detail}`;
  }

  function show(found) {
    section.hidden = false;
    section.classList.remove("old");
    if (found.error) { said.textContent = `It cannot be tried: ${found.error}`; return; }
    const among = `of ${number(found.documents)} document${found.documents === 1 ? "" : "s"}`;
    const since = found.since ? ` since ${found.since.slice(0, 16).replace("T", " ")}` : "";
    const rest = found.is_done || found.documents >= found.of ? "" : `, ${number(found.of - found.documents)} to go`;
    const more = found.uncounted.length ? " or more" : "";
    const uncounted = found.uncounted.map((condition) => ` Too many fail ${condition} alone to count them all.`);
    said.textContent = `Matched ${number(found.matched)}, nearly ${number(found.near)}${more}, ${among}${since}${rest}.${uncounted.join("")}`
      + (found.paused ? ` It would be paused: ${found.paused}` : "")
      + (found.is_done && !found.matched && !found.near && found.loosened ? " No documents fail one condition alone: try a wider window, or fewer conditions." : "");
    if (!bounds.contains(document.activeElement)) bounds.replaceChildren(...found.histograms.map(histogram));
    near.hidden = !found.misses.length;
    near.querySelector("ol").replaceChildren(...found.misses.map(miss));
    matches.hidden = !found.matches.length;
    matches.querySelector("ol").replaceChildren(...found.matches.map(sent));
  }

  // Makes an edit: of the text, or of the value that is tried for a parameter.
  function change(edit, hasFocus = true) {
    if (!edit.parameter) return make(edit, hasFocus);
    const field = values.querySelector(`#${CSS.escape(`trial-value-${edit.parameter}`)}`);
    field.value = edit.text;
    given.set(edit.parameter, edit.text);
    values.start();
    if (hasFocus) field.focus();
  }

  function miss(each) {
    const item = listed(each.match, `${each.said}: ${each.condition}`);
    const button = document.createElement("button");
    button.type = "button";
    const { parameter, text } = each.edit;
    button.textContent = each.kind === "condition" ? `Leave out ${each.condition}` : `Change ${parameter ? `$${parameter} ` : ""}to ${text}`;
    button.addEventListener("click", () => change(each.edit));
    item.append(button);
    return item;
  }

  function histogram(each) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = each.kind === "window" ? `Time between documents, to ${length(each.most, unitOf(each.most))}; the line is the window, to be dragged` : "Scores, 0 to 1; the line is the bound, to be dragged";
    const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": spoken(each) });
    const most = Math.max(...each.counts);
    const wide = WIDTH / each.counts.length;
    each.counts.forEach((count, at) => {
      const high = count && Math.max(2, (count / most) * (HEIGHT - 10));
      svg.append(element("rect", { x: at * wide + 1, y: HEIGHT - high, width: wide - 2, height: high }));
    });
    // The bound is the thumb of a slider that lies over the bars: a line to drag, or to move by keys.
    const [chart, slider, output] = ["div", "input", "output"].map((made) => document.createElement(made));
    const step = each.kind === "window" ? unitOf(each.most) : 0.01;
    const spelled = () => (each.kind === "window" ? length(Number(slider.value), step) : Math.max(step, slider.value).toFixed(2));
    const say = (text) => { output.textContent = text; slider.setAttribute("aria-valuetext", text); };
    chart.className = "bounded";
    Object.assign(slider, { type: "range", min: 0, max: each.most, step, value: each.bound });
    slider.setAttribute("aria-label", each.kind === "window" ? "Window" : "Bound");
    say(each.kind === "threshold" ? String(each.bound) : each.parameter ? length(each.bound, UNITS.at(-1)[1]) : each.condition);
    const bars = [...svg.children];
    const colour = () => bars.forEach((bar, at) => {
      const middle = ((at + 0.5) / bars.length) * each.most;
      bar.setAttribute("class", (each.kind === "window" ? middle < slider.value : middle > slider.value) ? "in" : "out");
    });
    colour();
    slider.addEventListener("input", () => { say(spelled()); colour(); });
    slider.addEventListener("change", () => {
      const text = spelled();
      change({ ...each, text }, false);
      if (!each.parameter) each.end = each.start + text.length; // The bars wait while the slider has the focus.
    });
    chart.append(svg, slider);
    figure.append(caption, chart, output);
    return figure;
  }

  return { readAhead, start, stop };
}

const number = (value) => value.toLocaleString("en");

function spoken({ counts, bound, most, kind }) {
  const at = Math.round((bound / most) * counts.length);
  const sum = (some) => some.reduce((total, count) => total + count, 0);
  const [below, above] = [sum(counts.slice(0, at)), sum(counts.slice(at))];
  return kind === "window" ? `${below} within the window, ${above} beyond it` : `${above} above the bound, ${below} below it`;
}

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// The unit of which the axis has enough to choose among.
function unitOf(us) {
  return (UNITS.find(([, each]) => us >= 24 * each) ?? UNITS.at(-1))[1];
}

// A length as XSCL has it, to a unit, in the largest one that says it.
function length(us, unit) {
  const exact = Math.max(1, Math.round(us / unit)) * unit;
  const [name, each] = UNITS.find(([, larger]) => exact % larger === 0);
  return `${exact / each} ${name}${exact === each ? "" : "s"}`;
}

function listed(match, why = "") {
  const item = document.createElement("li");
  const head = document.createElement("p");
  head.textContent = `${match.end.replace("T", " ").replace("Z", "")}  ${called(match).join(" + ")}`;
  item.append(head);
  const values = Object.entries(match.witnesses[0] ?? {}).filter(([name, node]) => node?.value && !name.includes("#")).slice(0, 6);
  if (values.length) {
    const list = document.createElement("p");
    list.className = "meta";
    list.textContent = values.map(([name, node]) => `${name} = ${node.value}`).join("; ");
    item.append(list);
  }
  if (why) {
    const reason = document.createElement("p");
    reason.className = "failed";
    reason.textContent = why;
    item.append(reason);
  }
  return item;
}

// What its documents are called: by their titles, where what is sent has them, else by their keys.
function called(match) {
  const sent = new DOMParser().parseFromString(match.output, "application/xml").documentElement;
  const parts = [...sent.children];
  return match.documents.map(({ stream, key }, at) => {
    const title = parts.length === match.documents.length ? parts[at].querySelector("title")?.textContent.trim() : "";
    return title ? `“${title.slice(0, 120)}”` : `${stream} ${key}`;
  });
}

// A match as `listed`, and what its subscribers would be sent.
function sent(match) {
  const item = listed(match);
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "What is sent";
  const output = document.createElement("pre");
  output.className = "code";
  output.tabIndex = 0;
  output.textContent = match.output;
  details.append(summary, output);
  item.append(details);
  return item;
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const whole = (rest + part.value).split("\n");
    rest = whole.pop();
    for (const line of whole) if (line) yield JSON.parse(line);
  }
}
