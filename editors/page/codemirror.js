// What the page's own scripts use of CodeMirror; `npm run build` makes one file of it.
export { autocompletion, completionKeymap, startCompletion } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, isolateHistory } from "@codemirror/commands";
export { bracketMatching } from "@codemirror/language";
export { forEachDiagnostic, lintGutter, lintKeymap, linter } from "@codemirror/lint";
export { EditorState, RangeSetBuilder, StateField } from "@codemirror/state";
export {
  Decoration, EditorView, drawSelection, highlightActiveLine, hoverTooltip, keymap, lineNumbers,
} from "@codemirror/view";
