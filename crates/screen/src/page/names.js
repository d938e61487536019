// Accessible names, after https://www.w3.org/TR/accname-1.2, and values.
const MAX_NAME = 200;
const MAX_TEXT = 2000;
const MAX_VALUE = 500;
const MAX_ADDRESS = 2000;

const NAMED_BY_CONTENT = new Set(`button cell checkbox columnheader gridcell heading link menuitem
  menuitemcheckbox menuitemradio option radio rowheader switch tab tooltip treeitem`.split(/\s+/));
const SILENT = new Set(`script style template noscript head meta link title datalist param source track
  defs symbol desc metadata clipPath mask linearGradient radialGradient filter marker pattern
  colgroup col rp wbr path rect circle ellipse line polyline polygon stop`.split(/\s+/));

const SHAPES = new Set(["path", "rect", "circle", "ellipse", "line", "polyline", "polygon"]);

// Most text is, and saying so is quicker than making it so.
const TIDY = /^(?:[!-~]+(?: [!-~]+)*)?$/;

// Icons of fonts are no text.
function tidy(text) {
  if (TIDY.test(text)) return text;
  return text.replace(/[\uE000-\uF8FF\u{F0000}-\u{10FFFF}\u200B\uFEFF\u00AD]/gu, "").replace(/\s+/g, " ").trim();
}

function bounded(text, limit) {
  if (text.length <= limit) return text;
  const end = text.codePointAt(limit - 2) > 0xffff ? limit - 2 : limit - 1;
  return text.slice(0, end) + "…";
}

function pseudoText(element, which) {
  if (!mayGenerate(element)) return "";
  const content = getComputedStyle(element, which).content;
  if (content === "none" || content === "normal" || content[0] !== '"') return "";
  // Alternative text stands after a slash.
  const parts = content.match(/"(?:[^"\\]|\\.)*"/g);
  const said = / \/ "/.test(content) ? parts.slice(-1) : parts;
  return said.map((part) => part.slice(1, -1).replace(/\\(.)/g, "$1")).join("");
}

// What a subtree says, as far as the budget goes.
function contentOf(node, withHidden, budget) {
  if (budget.left <= 0) return "";
  if (node.nodeType === Node.TEXT_NODE) {
    budget.left -= node.data.length + 1;
    return node.data;
  }
  if (node.nodeType !== Node.ELEMENT_NODE || SILENT.has(node.localName)) return "";
  budget.left -= 1;
  if (!withHidden && node.getAttribute("aria-hidden") === "true") return "";
  // What is below an item of a tree has names of its own.
  if (budget.isOfTree && node.getAttribute("role") === "group") return "";
  switch (node.localName) {
    case "br": return " ";
    case "img": return ` ${node.getAttribute("aria-label") || node.alt || node.title || ""} `;
    case "svg": return ` ${svgName(node)} `;
    case "input": case "textarea": case "select": return isSecret(node) || node.type === "hidden" ? "" : ` ${valueOf(node, roleOf(node)) ?? ""} `;
    case "iframe": case "object": case "embed": case "video": case "audio": return "";
    default:
  }
  const label = node.getAttribute("aria-label");
  if (label?.trim()) return ` ${label} `;
  const style = styleOf(node);
  if (style.display === "none" || style.visibility !== "visible" && !node.childElementCount) return "";
  let text = pseudoText(node, "::before");
  text += childrenText(node, withHidden, budget) + pseudoText(node, "::after");
  return style.display.startsWith("inline") || style.display === "contents" ? text : ` ${text} `;
}

function svgName(svg) {
  const label = svg.getAttribute("aria-label");
  if (label) return label;
  for (const child of svg.children) {
    if (child.localName === "title") return child.textContent;
  }
  return "";
}

// The words inside an element, of its own tree and of those in it.
function inner(element, withHidden) {
  const budget = { left: 4 * MAX_NAME, isOfTree: element.getAttribute("role") === "treeitem" };
  const text = childrenText(element, withHidden, budget);
  return tidy(pseudoText(element, "::before") + text + pseudoText(element, "::after"));
}

function childrenText(element, withHidden, budget) {
  let text = "";
  if (rootOf(element) || element.localName === "slot") {
    for (const child of childrenOf(element)) text += contentOf(child, withHidden, budget);
  } else {
    for (let child = element.firstChild; child; child = child.nextSibling) text += contentOf(child, withHidden, budget);
  }
  return text;
}

function textOf(element) {
  const only = element.firstChild;
  if (only && !only.nextSibling && only.nodeType === Node.TEXT_NODE && !rootOf(element)
      && !SILENT.has(element.localName)) {
    return tidy(pseudoText(element, "::before") + only.data.slice(0, 4 * MAX_NAME) + pseudoText(element, "::after"));
  }
  return inner(element, false) || inner(element, true);
}

function byIds(element, ids) {
  const root = element.getRootNode();
  const said = ids.split(/\s+/).map((id) => {
    const other = id && root.getElementById?.(id);
    if (!other) return "";
    const label = other.getAttribute("aria-label");
    if (label?.trim()) return label;
    if (other.localName === "input" || other.localName === "select") return contentOf(other, true, { left: MAX_NAME });
    // Hidden text may be what names something.
    return textOf(other) || (other.checkVisibility() ? "" : other.textContent);
  });
  return tidy(said.join(" "));
}

function labelText(element) {
  const labels = element.labels;
  if (!labels?.length) return "";
  return tidy(Array.from(labels, (label) => {
    // A field in its own label does not name itself.
    let text = "";
    const gather = (node) => {
      for (const child of childrenOf(node)) {
        if (child === element) continue;
        text += contains(child, element) ? (gather(child), "") : contentOf(child, false, { left: MAX_TEXT });
      }
    };
    text += pseudoText(label, "::before");
    gather(label);
    return text + pseudoText(label, "::after");
  }).join(" "));
}

function childText(element, name) {
  for (const child of element.children) {
    if (child.localName === name) return textOf(child);
  }
  return "";
}

function nativeName(element, role) {
  switch (element.localName) {
    case "input":
      switch (element.type) {
        case "submit": return element.getAttribute("value") ?? "Submit";
        case "reset": return element.getAttribute("value") ?? "Reset";
        case "button": return element.value;
        case "image": return element.alt || element.getAttribute("value") || element.title || "Submit";
        default: return labelText(element);
      }
    case "select": case "textarea": case "meter": case "progress": case "output":
      return labelText(element);
    case "button": return labelText(element) || textOf(element);
    case "img": case "area": return element.alt || "";
    case "svg": return svgName(element);
    case "fieldset": return childText(element, "legend");
    case "table": return childText(element, "caption");
    case "figure": return childText(element, "figcaption");
    case "details": return "";
    case "optgroup": return element.label;
    case "option": return element.label || element.text;
    default: return NAMED_BY_CONTENT.has(role) ? textOf(element) : "";
  }
}

function ownWords(element, role) {
  return NAMED_BY_CONTENT.has(role) && !NATIVE[element.localName] ? textOf(element) : "";
}

// The whole name; who shows it bounds it.
function nameOf(element, role = roleOf(element)) {
  if (!element.hasAttributes()) return withoutSecrets(tidy(nativeName(element, role)) || ownWords(element, role));
  const ids = element.getAttribute("aria-labelledby");
  let name = ids ? byIds(element, ids) : "";
  if (!name) {
    const label = tidy(element.getAttribute("aria-label") || "");
    if (label) {
      // A page may call a thing otherwise than it shows it; a person sees what it shows.
      const shown = NAMED_BY_CONTENT.has(role) ? textOf(element) : "";
      const differs = /\p{L}/u.test(shown) && !label.toLowerCase().includes(shown.toLowerCase());
      name = differs ? `${label} (${bounded(shown, MAX_NAME)})` : label;
    }
  }
  if (!name) name = tidy(nativeName(element, role) || "");
  if (!name) name = ownWords(element, role);
  if (!name) name = tidy(element.getAttribute("title") || "");
  if (!name) name = tidy(element.placeholder || element.getAttribute("aria-placeholder") || "");
  return withoutSecrets(name);
}

const ICON = /(^|[-_ ])(icons?|ico|fa[bdlrs]?|bi|mdi|glyphicons?|material|svg|octicon|feather|lucide|ti|ri|uil?|la[bdlrs]?)([-_ ]|$)/i;
const MOST_ICONS = 4;
// Of the classes of icons those that say which they are, where there are any.
const WHICH_ICON = /^(icon|ico|fa[bdlrs]?|bi|mdi|glyphicon|octicon|feather|lucide|ti|ri|uil?|la[bdlrs]?)-[a-z]/i;
// Where pages keep words that they show only when a thing is pointed at, and those for their own tests.
const TIPS = ["data-tip", "data-tooltip", "data-title", "data-original-title", "data-bs-title", "data-bs-original-title"];
const TEST_NAMES = ["data-testid", "data-test-id", "data-test", "data-cy", "data-qa"];

// What says what a control is that has no words: its tips, the classes, titles and files of its
// pictures, and last how the page's tests call it, or a form.
function iconWords(element) {
  // A form's own fields can shadow its properties.
  const attribute = (one, name) => Element.prototype.getAttribute.call(one, name) || "";
  const inner = [element, ...Element.prototype.querySelectorAll.call(element, "i, span, svg, use, img, [data-icon], [title]")];
  const all = inner.slice(0, 12);
  const which = (one) => attribute(one, "class").split(/\s+/).filter((name) => WHICH_ICON.test(name)).join(" ");
  const classesOf = all.some(which) ? which : (one) => attribute(one, "class");
  const said = all.flatMap((one) => {
    const isIcon = /^(i|svg|use|img)$/.test(one.localName) || ICON.test(attribute(one, "class"));
    const file = (attribute(one, "src") || attribute(one, "href") || attribute(one, "xlink:href")).split(/[?]/)[0];
    return [attribute(one, "title"), attribute(one, "data-icon"), isIcon ? classesOf(one) : "",
      one !== element && isIcon && !file.startsWith("data:") ? file.split(/[/#]/).pop().replace(/\.\w+$/, "") : ""];
  });
  const firstOf = (names) => names.map((name) => attribute(element, name)).find(Boolean) || "";
  const words = [...new Set(said.map((text) => tidy(text)).filter(Boolean))].slice(0, MOST_ICONS).join(" ");
  const [own] = /^[\w.@:-]{2,40}$/.exec(attribute(element, "name")) || [""];
  const test = words ? "" : firstOf(TEST_NAMES) || own;
  return bounded(tidy(`${firstOf(TIPS)} ${/^(icon\b|$)/i.test(words) ? words : `icon ${words}`} ${test && `id ${test}`}`), 120);
}

function media(element) {
  const state = element.ended ? "ended" : element.paused ? "paused" : "playing";
  return element.muted ? `${state}, muted` : state;
}

// What is typed, chosen or set; null if there is no such thing. Never of a secret field.
function valueOf(element, role) {
  switch (element.localName) {
    case "input":
      switch (element.type) {
        case "checkbox": case "radio": case "button": case "submit": case "reset": case "image": return null;
        case "range": return element.getAttribute("aria-valuetext") || element.value;
        case "file": return Array.from(element.files, (file) => file.name).join(", ");
        default: return element.value;
      }
    case "textarea": return element.value;
    case "select": return chosenNames(element).join(", ");
    case "progress": return element.hasAttribute("value") ? `${Math.round(element.position * 100)}%` : null;
    case "meter": return String(element.value);
    case "video": case "audio": return media(element);
    default:
  }
  if (role === "heading") {
    return element.getAttribute("aria-level") || /^h([1-6])$/.exec(element.localName)?.[1] || "2";
  }
  const said = element.getAttribute("aria-valuetext") || element.getAttribute("aria-valuenow");
  if (said) return said;
  if (isEditingHost(element)) return element.innerText.replace(/\n$/, "");
  if (role === "textbox" || role === "searchbox" || role === "combobox") {
    const field = element.querySelector("input");
    return field ? (isSecret(field) ? null : field.value) : textOf(element);
  }
  return null;
}
