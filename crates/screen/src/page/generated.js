// Which elements a style sheet may put words into. Asking each for its pseudo-elements costs more
// than all the rest of its name, and few have any.
const MAX_RULES = 20_000;
const perSheet = new WeakMap();
// A selector, or null if it is not known: then every element is asked.
let generating = null;
// A selector of what shows something when it is pointed at; empty if there is none.
let revealing = "";

function generators() {
  const selectors = [];
  const sheets = [...document.styleSheets, ...document.adoptedStyleSheets];
  revealing = "";
  for (const sheet of sheets) {
    const found = ofSheet(sheet);
    revealing = [revealing, ...perSheet.get(sheet)?.reveals || []].filter(Boolean).join(",");
    selectors.push(found);
  }
  if (selectors.includes(null)) return null;
  const selector = selectors.filter(Boolean).join(",");
  try {
    if (selector) document.documentElement.matches(selector);
    return selector;
  } catch {
    return null;
  }
}

function ofSheet(sheet) {
  let rules;
  try {
    rules = sheet.cssRules;
  } catch {
    // Of another site: nobody may read it.
    return null;
  }
  const known = perSheet.get(sheet);
  if (known?.rules === rules.length) return known.selector;
  const found = [];
  const budget = { left: MAX_RULES, reveals: [] };
  const selector = gather(rules, found, budget) ? found.join(",") : null;
  perSheet.set(sheet, { rules: rules.length, selector, reveals: budget.reveals });
  return selector;
}

// What is pointed at in a selector whose rule shows what lies in it or beside it.
const POINTED = /^([^:(),]+):hover[^\s>+~,()]*\s*[\s>+~]/;

function whatReveals({ display, visibility, opacity }, selector) {
  if ((!display || display === "none") && visibility !== "visible" && opacity !== "1") return [];
  return selector.split(",").map((one) => POINTED.exec(one.trim())?.[1]).filter(Boolean);
}

// Whether all of the rules could be understood.
function gather(rules, found, budget) {
  for (const rule of rules) {
    if (--budget.left < 0) return false;
    const selector = rule.selectorText;
    if (selector?.includes(":hover")) budget.reveals.push(...whatReveals(rule.style, selector));
    const content = rule.style?.content;
    if (content && content !== "none" && content !== "normal" && content !== '""' && selector) {
      if (selector.includes("&")) return false;
      found.push(selector.replace(/::?(before|after)\b/g, ""));
    }
    if (rule.styleSheet && ofSheet(rule.styleSheet) !== "") return false;
    if (rule.cssRules?.length) {
      if (selector && /before|after/.test(rule.cssText)) return false;
      if (!selector && !gather(rule.cssRules, found, budget)) return false;
    }
  }
  return true;
}

function mayGenerate(element) {
  if (generating === null || element.getRootNode() !== document) return true;
  return generating !== "" && element.matches(generating);
}
