// Regular expressions whose steps are counted: a backtracking matcher that stands in for the engine's own. However fast
// a machine is, a pattern takes the same number of steps on the same text.

import { RegExpParser } from "@eslint-community/regexpp";

const nativeExec = RegExp.prototype.exec;
const parser = new RegExpParser({ ecmaVersion: 2024 });
const counter = { steps: 0, most: Infinity };

export class TooManySteps extends Error {}

function step() {
  if (++counter.steps > counter.most) throw new TooManySteps();
}

/** Runs `work`, and gives how many steps its patterns took; throws where that is more than `most`. */
export async function countSteps(work, most = Infinity) {
  Object.assign(counter, { steps: 0, most });
  try {
    await work();
    if (counter.steps > most) throw new TooManySteps(); // somebody has caught it
    return counter.steps;
  } finally {
    counter.most = Infinity;
  }
}

/** Runs `work` with a counter of its own: what happens in a worker costs the page nothing. */
export function countApart(work, most) {
  const { ...before } = counter;
  Object.assign(counter, { steps: 0, most });
  try {
    const result = work();
    if (counter.steps > most) throw new TooManySteps();
    return result;
  } finally {
    Object.assign(counter, before);
  }
}

export const stepsSoFar = () => counter.steps;

/** From now on, all patterns count. */
export function install() {
  RegExp.prototype.exec = function exec(text) { return matcherOf(this)(this, String(text)); };
}

const matchers = new Map();

function matcherOf({ source, flags }) {
  const name = `${flags}/${source}`;
  if (!matchers.has(name)) matchers.set(name, createMatcher(parser.parseLiteral(`/${source}/${flags}`)));
  return matchers.get(name);
}

function createMatcher({ pattern, flags }) {
  const groups = [];
  const state = { text: "", captures: [] };
  const { ignoreCase, multiline, unicode, dotAll } = flags;
  const charFlags = `${ignoreCase ? "i" : ""}${unicode ? "u" : ""}${dotAll ? "s" : ""}`;

  const widthAt = (at) => (unicode && state.text.codePointAt(at) > 0xffff ? 2 : 1);
  const widthBefore = (at) => (unicode && at > 1 && state.text.codePointAt(at - 2) > 0xffff ? 2 : 1);

  function character(node) {
    const one = new RegExp(`^(?:${node.raw})$`, charFlags);
    const known = new Map();
    return (text) => {
      if (!known.has(text)) known.set(text, nativeExec.call(one, text) !== null);
      return known.get(text);
    };
  }

  /** One character further, or -1. */
  function mover(node, isBackward) {
    const accepts = character(node);
    return (at) => {
      step();
      const width = isBackward ? widthBefore(at) : widthAt(at);
      const [from, to] = isBackward ? [at - width, at] : [at, at + width];
      if (from < 0 || to > state.text.length || !accepts(state.text.slice(from, to))) return -1;
      return isBackward ? from : to;
    };
  }

  const isWord = (at) => at >= 0 && at < state.text.length && nativeExec.call(/^\w$/, state.text[at]) !== null;

  function assertion(node) {
    switch (node.kind) {
      case "start": return (at) => at === 0 || (multiline && "\n\r\u2028\u2029".includes(state.text[at - 1]));
      case "end": return (at) => at === state.text.length || (multiline && "\n\r\u2028\u2029".includes(state.text[at]));
      case "word": return (at) => (isWord(at - 1) !== isWord(at)) !== node.negate;
      default: {
        const inner = anyOf(node.alternatives, node.kind === "lookbehind");
        return (at) => {
          const before = [...state.captures];
          const found = inner(at, () => true);
          if (node.negate || !found) state.captures = before;
          return found !== node.negate;
        };
      }
    }
  }

  function element(node, isBackward) {
    switch (node.type) {
      case "Character": case "CharacterSet": case "CharacterClass": {
        const move = mover(node, isBackward);
        return (at, then) => { const to = move(at); return to >= 0 && then(to); };
      }
      case "Assertion": {
        const holds = assertion(node);
        return (at, then) => { step(); return holds(at) && then(at); };
      }
      case "Group": return anyOf(node.alternatives, isBackward);
      case "CapturingGroup": {
        const inner = anyOf(node.alternatives, isBackward);
        const number = groups.push(node);
        return (at, then) => inner(at, (to) => {
          const before = state.captures[number];
          state.captures[number] = state.text.slice(Math.min(at, to), Math.max(at, to));
          if (then(to)) return true;
          state.captures[number] = before;
          return false;
        });
      }
      case "Backreference": return (at, then) => {
        step();
        const captured = state.captures[groups.indexOf([node.resolved].flat()[0]) + 1] ?? "";
        const from = isBackward ? at - captured.length : at;
        return state.text.startsWith(captured, from) && then(isBackward ? from : at + captured.length);
      };
      case "Quantifier": return repeat(node, isBackward);
      default: throw new Error(`no matcher for ${node.type}`);
    }
  }

  function repeat({ element: inner, min, max, greedy }, isBackward) {
    if (["Character", "CharacterSet", "CharacterClass"].includes(inner.type)) {
      const move = mover(inner, isBackward);
      return (at, then) => {
        const places = [at];
        const further = () => { const to = places.length > max ? -1 : move(places.at(-1)); if (to >= 0) places.push(to); return to >= 0; };
        while (places.length <= min) if (!further()) return false;
        if (!greedy) {
          do { step(); if (then(places.at(-1))) return true; } while (further());
          return false;
        }
        while (further());
        for (; places.length > min; places.pop()) { step(); if (then(places.at(-1))) return true; }
        return false;
      };
    }
    const once = element(inner, isBackward);
    return (at, then) => {
      const goOn = (place, count) => {
        step();
        const again = () => count < max && once(place, (to) => (to !== place || count < min) && goOn(to, count + 1));
        const leave = () => count >= min && then(place);
        return greedy ? again() || leave() : leave() || again();
      };
      return goOn(at, 0);
    };
  }

  function sequence({ elements }, isBackward) {
    const parts = elements.map((each) => element(each, isBackward));
    if (isBackward) parts.reverse();
    return parts.reduceRight((later, part) => (at, then) => part(at, (to) => later(to, then)), (at, then) => then(at));
  }

  function anyOf(alternatives, isBackward) {
    const ways = alternatives.map((each) => sequence(each, isBackward));
    return ways.length === 1 ? ways[0] : (at, then) => ways.some((way) => { step(); return way(at, then); });
  }

  const whole = anyOf(pattern.alternatives, false);
  // JavaScript numbers groups as they are opened; here the inner ones come first.
  const inOrder = [...groups].sort((a, b) => a.start - b.start);

  return (regexp, text) => {
    const moves = flags.global || flags.sticky;
    const outer = [state.text, state.captures];
    state.text = text;
    try {
      for (let at = moves ? regexp.lastIndex : 0; at <= text.length; at++) {
        state.captures = [];
        step();
        let end = -1;
        if (whole(at, (to) => { end = to; return true; })) {
          if (moves) regexp.lastIndex = end;
          const captured = inOrder.map((group) => state.captures[groups.indexOf(group) + 1]);
          const named = inOrder.flatMap(({ name }, number) => (name ? [[name, captured[number]]] : []));
          return Object.assign([text.slice(at, end), ...captured], { index: at, input: text, groups: named.length ? Object.fromEntries(named) : undefined });
        }
        if (flags.sticky) break;
      }
      if (moves) regexp.lastIndex = 0;
      return null;
    } finally {
      [state.text, state.captures] = outer;
    }
  };
}
