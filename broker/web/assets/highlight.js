// Tells the kinds of a text's parts, as Pygments does from the same rules.
import { RULES } from "./xscl.js";

const STATES = Object.fromEntries(
  Object.entries(RULES).map(([state, rules]) => [
    state,
    rules.map(([source, flags, kinds, then]) => ({ expression: new RegExp(source, flags), kinds, then })),
  ]),
);

// Returns [from, to, kind] of each part that has a kind; what fits no rule has none.
export function parts(text) {
  const found = [];
  const add = (from, to, kind) => { if (kind && to > from) found.push([from, to, kind]); };
  let states = ["root"];
  for (let at = 0; at < text.length; ) {
    const rule = STATES[states.at(-1)].find(({ expression }) => {
      expression.lastIndex = at;
      return expression.test(text);
    });
    if (!rule) {
      if (text[at] === "\n") states = ["root"];
      at += 1;
      continue;
    }
    rule.expression.lastIndex = at;
    const match = rule.expression.exec(text);
    if (typeof rule.kinds === "string") add(at, at + match[0].length, rule.kinds);
    else {
      let from = at;
      rule.kinds.forEach((kind, group) => {
        add(from, from + match[group + 1].length, kind);
        from += match[group + 1].length;
      });
    }
    at += match[0].length;
    for (const state of rule.then) {
      if (state === "#push") states.push(states.at(-1));
      else if (state === "#pop") states.pop();
      else if (typeof state === "number") states.splice(Math.max(1, states.length - Math.abs(state)));
      else states.push(state);
    }
  }
  return found;
}
