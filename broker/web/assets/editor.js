// Puts an editor of XSCL in the place of a textarea, which goes on holding the text for its form.
// What it says of the text is the API's (`/v1/language`).
//
// The editor lives in a shadow tree: there its styles are adopted sheets, which need no exception
// from the page's Content-Security-Policy.
import {
  Decoration, EditorState, EditorView, RangeSetBuilder, StateField, autocompletion, bracketMatching,
  completionKeymap, defaultKeymap, drawSelection, highlightActiveLine, history, historyKeymap,
  hoverTooltip, isolateHistory, keymap, lineNumbers, lintGutter, lintKeymap, linter,
} from "./codemirror.js";
import { parts } from "./highlight.js";

const CHECK_AFTER_MS = 150;
const TYPES = { stream: "namespace", element: "property", attribute: "property", variable: "variable", function: "function", word: "keyword" };

// Asks the API in the name of whoever is logged in; what is asked anew ends what was asked before.
export async function ask(path, { body, signal, method = "POST" } = {}) {
  const token = document.querySelector("meta[name=xscl-form]")?.content;
  const headers = { "Content-Type": "text/plain; charset=utf-8", ...(token && { "X-Xscl-Form": token }) };
  return fetch(path, { method, body, headers, signal, credentials: "same-origin" });
}

// Returns what the API answers; null where it does not, or where nobody waits for it any more: that may
// also be while an answer is read.
async function told(path, asked) {
  try {
    const answer = await ask(path, asked);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

// Offsets of the API are in characters, those of scripts in UTF-16 units.
const characters = (text, units) => [...text.slice(0, units)].length;
export const units = (text, offset) => [...text].slice(0, offset).join("").length;

const colours = StateField.define({
  create: (state) => coloured(state.doc.toString()),
  update: (found, change) => (change.docChanged ? coloured(change.state.doc.toString()) : found),
  provide: (field) => EditorView.decorations.from(field),
});

function coloured(text) {
  const builder = new RangeSetBuilder();
  for (const [from, to, kind] of parts(text)) builder.add(from, to, Decoration.mark({ class: kind }));
  return builder.finish();
}

const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--card)", fontSize: "0.92rem", border: "1px solid var(--soft)", borderRadius: "8px" },
  "&.cm-focused": { outline: "3px solid var(--link)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: 'ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace', minHeight: "12rem", maxHeight: "60vh" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--code)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--chosen)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--chosen)", outline: "1px solid var(--soft)" },
  ".cm-tooltip": { color: "var(--text)", backgroundColor: "var(--card)", border: "1px solid var(--soft)", borderRadius: "6px", maxWidth: "min(40rem, 90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { color: "var(--card)", backgroundColor: "var(--link)" },
  ".cm-completionDetail": { color: "inherit", fontStyle: "normal", opacity: "1" },
  ".cm-hover": { padding: ".3rem .6rem", whiteSpace: "pre-wrap" },
  // CodeMirror's own marks are pictures in addresses, which the page does not load.
  ".cm-lintRange, .cm-lintRange-error, .cm-lintRange-warning, .cm-lintRange-active": { backgroundImage: "none", paddingBottom: "0" },
  ".cm-lintRange-error": { textDecoration: "underline wavy var(--bad)" },
  ".cm-lintRange-warning": { textDecoration: "underline wavy var(--mild)" },
  ".cm-lintRange-active": { backgroundColor: "var(--chosen)" },
  ".cm-lint-marker": { content: '"●"', width: "auto", height: "auto" },
  ".cm-lint-marker-error": { content: '"●"', color: "var(--bad)" },
  ".cm-lint-marker-warning": { content: '"▲"', color: "var(--mild)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
  ".cm-diagnosticAction": { backgroundColor: "var(--link)", color: "var(--card)" },
  ".nt, .n, .na": { color: "var(--tag)" },
  ".s, .m, .mi, .se": { color: "var(--string)" },
  ".k, .kt, .nf": { color: "var(--keyword)" },
  ".nv, .vg": { fontWeight: "600" },
  ".cm, .c1": { color: "var(--soft)", fontStyle: "italic" },
});

// Returns the view.  `id()` is the query's id; `checked(diagnostics)` is told what was found.
export function edit(textarea, { id = () => "", checked = () => {}, changed = () => {} } = {}) {
  const host = document.createElement("div");
  textarea.after(host);
  const root = host.attachShadow({ mode: "open" });
  let checking = new AbortController();

  async function check(view) {
    checking.abort();
    checking = new AbortController();
    const text = view.state.doc.toString();
    if (!text.trim()) return checked([]), [];
    const asked = id() ? `?id=${encodeURIComponent(id())}` : "";
    const answer = await told(`/v1/language/check${asked}`, { body: text, signal: checking.signal });
    if (!answer) return [];
    const { diagnostics: found, parameters } = answer;
    if (view.state.doc.toString() === text) checked(found, text, parameters);
    return found.map((each) => ({
      from: units(text, each.start),
      to: Math.max(units(text, each.end), units(text, each.start)),
      severity: each.severity,
      message: each.hint ? `${each.message}\n${each.hint}` : each.message,
      actions: each.fixes.map((fix) => ({ name: fix.title, apply: (on) => apply(on, fix) })),
    }));
  }

  async function propose(context) {
    const text = context.state.doc.toString();
    const before = text.slice(0, context.pos);
    if (!context.explicit && !/(?:[\w@'-]|[/[{@])$/u.test(before)) return null;
    const offset = characters(text, context.pos);
    const signal = new AbortController();
    context.addEventListener("abort", () => signal.abort());
    const answer = await told(`/v1/language/completions?offset=${offset}`, { body: text, signal: signal.signal });
    const found = answer?.completions;
    if (!found?.length) return null;
    return {
      from: units(text, found[0].start),
      filter: false,
      options: found.map((each) => ({ label: each.text, detail: each.detail, type: TYPES[each.kind] })),
    };
  }

  async function mean(view, position) {
    const text = view.state.doc.toString();
    const answer = await told(`/v1/language/hover?offset=${characters(text, position)}`, { body: text });
    const found = answer?.hover;
    if (!found) return null;
    return {
      pos: units(text, found.start),
      end: units(text, found.end),
      create: () => {
        const dom = document.createElement("div");
        dom.className = "cm-hover";
        dom.textContent = found.text.replaceAll("`", "");
        return { dom };
      },
    };
  }

  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: textarea.value,
      extensions: [
        lineNumbers(), history(), drawSelection(), highlightActiveLine(), bracketMatching(), lintGutter(),
        colours, theme, EditorView.lineWrapping,
        EditorView.contentAttributes.of({
          "aria-label": textarea.labels[0].textContent, spellcheck: "false", autocapitalize: "off",
        }),
        linter(check, { delay: CHECK_AFTER_MS }),
        autocompletion({ override: [propose], activateOnTyping: true, icons: false }),
        hoverTooltip(mean),
        keymap.of([...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.updateListener.of((change) => {
          if (!change.docChanged) return;
          textarea.value = change.state.doc.toString();
          changed(textarea.value);
        }),
      ],
    }),
  });
  textarea.hidden = true;
  textarea.required = false; // A hidden field that lacks something cannot say so.
  textarea.labels[0].addEventListener("click", () => view.focus());
  return view;
}

// Makes an edit that the API proposes, as one step that can be undone.
export function apply(view, { start, end, text }, hasFocus = true) {
  const before = view.state.doc.toString();
  change(view, { from: units(before, start), to: units(before, end), insert: text }, hasFocus);
}

export function replace(view, text) {
  change(view, { from: 0, to: view.state.doc.length, insert: text }, true);
}

function change(view, changes, hasFocus) {
  view.dispatch({ changes, annotations: isolateHistory.of("full") });
  if (hasFocus) view.focus();
}
