// What an input would touch: where an element can be pointed at, what it is, the form around it,
// and what using it starts. A form's own fields can shadow its properties, so what the gate judges
// by is read through the prototypes.
const getter = (type, name) => {
  const get = Object.getOwnPropertyDescriptor(type.prototype, name).get;
  return (object) => get.call(object);
};
const parentNodeOf = getter(Node, "parentNode");
const slotOf = getter(Element, "assignedSlot");
const attribute = (element, name) => Element.prototype.getAttribute.call(element, name);
const matches = (element, selector) => Element.prototype.matches.call(element, selector);
const formFields = getter(HTMLFormElement, "elements");
const formAction = getter(HTMLFormElement, "action");
const formMethod = getter(HTMLFormElement, "method");

const LINK = "a[href], area[href]";
const FIELD = "input:not([type=hidden], [type=submit], [type=button], [type=image], [type=reset]), textarea, select";
const EDITABLE = "[contenteditable='']," + "[contenteditable=true], [contenteditable=plaintext-only]";
const USABLE = LINK + ", button, summary, label, option, [onclick], [tabindex], [role=button], [role=link], " +
  "[role=checkbox], [role=radio], [role=switch], [role=tab], [role=option], [role=menuitem], " +
  "[role=menuitemcheckbox], [role=menuitemradio], [role=combobox], [role=slider], [role=spinbutton], " +
  "[role=treeitem], " + EDITABLE + ", " + FIELD + ", input";
// Fields of a form that are told.
const MOST_FIELDS = 50;

// The element around a node as it is painted: through slots and out of shadow roots.
function around(node) {
  const slot = node instanceof Element && slotOf(node);
  if (slot) return slot;
  const parent = parentNodeOf(node);
  return parent instanceof ShadowRoot ? parent.host : parent instanceof Element ? parent : null;
}

function nearest(node, selector) {
  for (let at = node; at; at = around(at)) if (matches(at, selector)) return at;
  return null;
}

const isWithin = (node, outer) => {
  for (let at = node; at; at = around(at)) if (at === outer) return true;
  return false;
};

// Both are one control for a person: a field and its label.
const isSameControl = (one, other) =>
  one === other || one.control === other || other.control === one ||
  (one instanceof HTMLLabelElement && other instanceof HTMLLabelElement && one.control === other.control && !!one.control);

// A box that takes the keyboard and is nothing by itself.
const BARE = ":is(div, span):not([role], [aria-label], [aria-labelledby], [title])";

// The one thing in an element that takes its clicks and says all that it says: the link in a tab,
// the inner box of an item of a menu, the part of a slider that takes the keyboard.
function coreOf(element) {
  if (matches(element, "label, " + FIELD + ", " + EDITABLE)) return null;
  const inner = Element.prototype.querySelectorAll.call(element, USABLE);
  if (inner.length !== 1 || matches(inner[0], "label, " + FIELD + ", " + EDITABLE)) return null;
  const said = tidy(inner[0].textContent);
  const says = said || attribute(element, "role") && matches(inner[0], BARE);
  return says && said === tidy(element.textContent) ? inner[0] : null;
}

// What takes the clicks of an element that takes none itself, as a caption in a drawing or in a
// button, or the field of a list that opens: what lies below it in the box around it. A field that is
// not painted lies below the rest of a box of which it is the only thing that is used.
function bodyOf(element) {
  const box = around(element);
  if (box && matches(element, FIELD) && !element.checkVisibility(PAINTED) && getComputedStyle(box).pointerEvents !== "none") {
    const used = [...Element.prototype.querySelectorAll.call(box, USED)].filter((one) => one.tabIndex >= 0);
    if (used.length === 1 && used[0] === element) return box;
  }
  for (let at = element; at && at !== document.body; at = around(at)) {
    if (getComputedStyle(at).pointerEvents !== "none") return at === element || at instanceof SVGSVGElement ? null : at;
    if (matches(at, USABLE) && !(isSameControl(at, element) && passesClicks(element))) return null;
  }
  return null;
}

// Whether the box around takes the clicks for it, as for a field, or the control in a component.
const passesClicks = (element) => !element.disabled && (matches(element, FIELD) || element.getRootNode() instanceof ShadowRoot);

// Whether what lies at a point is the element, or a part of it that nothing else can be done with.
function landsOn(hit, element, loosely) {
  const core = coreOf(element);
  const others = [core, standInOf(element), bodyOf(element)];
  if (hit && matches(hit, USABLE) && coreOf(hit) === element) return true;
  for (let at = hit; at; at = around(at)) {
    if (others.includes(at) || isSameControl(at, element)) return true;
    if (!loosely && matches(at, USABLE) && !isLabelWithin(at, element)) return false;
  }
  return false;
}

// A label of nothing, or of a field in the component itself, is a part of that.
const isLabelWithin = (one, element) => one instanceof HTMLLabelElement && (!one.control || isWithin(one.control, element));

// Of a rectangle: the middle first, then all over.
const SPREAD = [[.5, .5], [.25, .5], [.75, .5], [.5, .25], [.5, .75], [.1, .5], [.9, .5], [.5, .1], [.5, .9],
  [.1, .1], [.9, .1], [.1, .9], [.9, .9], [.02, .5], [.98, .5]];

function rectangles(element) {
  if (element instanceof HTMLAreaElement) return areaRectangles(element);
  const edges = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
  const view = globalThis.visualViewport;
  if (view && globalThis.top === globalThis) {
    Object.assign(edges, { left: view.offsetLeft, top: view.offsetTop });
    Object.assign(edges, { right: view.offsetLeft + view.width, bottom: view.offsetTop + view.height });
  }
  const cut = (rect) => ({
    x: Math.max(rect.left, edges.left), y: Math.max(rect.top, edges.top),
    width: Math.min(rect.right, edges.right) - Math.max(rect.left, edges.left),
    height: Math.min(rect.bottom, edges.bottom) - Math.max(rect.top, edges.top),
  });
  return [...Element.prototype.getClientRects.call(element)].map(cut)
    .filter((rect) => rect.width >= 1 && rect.height >= 1)
    .sort((one, other) => other.width * other.height - one.width * one.height).slice(0, 4);
}

function areaRectangles(area) {
  const map = area.closest("map");
  const image = map && [...document.images].find((one) => one.useMap === "#" + map.name);
  if (!image) return [];
  const box = image.getBoundingClientRect();
  const numbers = area.coords.split(",").map(Number);
  if (area.shape === "circle") {
    const [x, y, r] = numbers;
    return [{ x: box.x + x - r / 2, y: box.y + y - r / 2, width: r, height: r }];
  }
  const across = numbers.filter((_, at) => at % 2 === 0);
  const down = numbers.filter((_, at) => at % 2 === 1);
  const [left, top] = [Math.min(...across), Math.min(...down)];
  return [{ x: box.x + left, y: box.y + top, width: Math.max(...across) - left, height: Math.max(...down) - top }];
}

// The element, its labels, and what stands for it.
const partsOf = (element) => [...new Set([standInOf(element), element, ...element.labels || []])];

// The one part that listens in a switch or the like that does not.
function listenersIn(element) {
  if (!OPERABLE.has(roleOf(element)) || listening.has(element) || !aroundListening.has(element)) return [];
  const inner = [...Element.prototype.querySelectorAll.call(element, "*")].filter((one) => listening.has(one));
  return inner.length === 1 ? inner : [];
}

// Where a person would point. A tab is its link; of rows and items all that is no other's is theirs.
function surfacesOf(element) {
  const core = coreOf(element);
  const own = partsOf(element);
  if (!core) return [...listenersIn(element), ...own];
  return ONE_OF_MANY.has(roleOf(element)) ? [...own, core] : [core, ...own];
}

// Whether nothing between what is hit and the element listens by itself, as a block within a block.
function isOwn(hit, element) {
  for (let at = hit; at && at !== element; at = around(at)) if (listening.has(at)) return false;
  return true;
}

// A point where the element, or a label of it, can be reached; of a box rather one that is no other's.
function pointOf(element, loosely) {
  let shared = null;
  for (const surface of surfacesOf(element)) {
    for (const rect of rectangles(surface)) {
      for (const [across, down] of SPREAD) {
        const [x, y] = [rect.x + rect.width * across, rect.y + rect.height * down];
        const hit = hitAt(x, y);
        if (!landsOn(hit, element, loosely)) continue;
        if (OPERABLE.has(roleOf(element)) || isOwn(hit, element)) return { x, y };
        shared ??= { x, y };
      }
    }
  }
  if (shared) return shared;
  return pointsOnLines(element).find(({ x, y }) => landsOn(hitAt(x, y), element, loosely)) || null;
}

// Lines of a drawing that are tried, and where along them.
const MOST_LINES = 8;
const ALONG = [.5, .25, .75, .1, .9];

// On the lines of a drawing, which fill little of the box around them.
function pointsOnLines(element) {
  if (!(element instanceof SVGElement)) return [];
  const shapes = [element, ...Element.prototype.querySelectorAll.call(element, "path, line, polyline, polygon, rect, circle, ellipse")];
  const lines = shapes.filter((one) => one instanceof SVGGeometryElement).slice(0, MOST_LINES);
  return lines.flatMap((line) => {
    const [length, toScreen] = [line.getTotalLength(), line.getScreenCTM()];
    const points = toScreen ? ALONG.map((part) => line.getPointAtLength(length * part).matrixTransform(toScreen)) : [];
    return points.map(({ x, y }) => ({ x, y }));
  });
}

// What lies over an element that cannot be reached.
function coverOf(element) {
  const surface = partsOf(element).find((one) => rectangles(one).length);
  const rect = surface && rectangles(surface)[0];
  const hit = rect && hitAt(rect.x + rect.width / 2, rect.y + rect.height / 2);
  return hit ? words(hit) : null;
}

function scrollTo(element) {
  const surface = partsOf(element).find((one) => Element.prototype.getClientRects.call(one).length);
  (surface || element).scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
}

const words = (element) => {
  if (element === document.body && !roleOf(element)) return "body";
  const name = nameOf(element) || withoutSecrets(tidy(element.textContent || ""));
  return (roleOf(element) || element.localName) + (name ? ` “${bounded(name, 80)}”` : "");
};

const isTicked = (element) => matches(element, "input[type=checkbox], input[type=radio]");

// Something stands in a field that was not there when the page came.
function isFilled(field) {
  if (isTicked(field)) return field.checked !== field.defaultChecked;
  if (field instanceof HTMLSelectElement) {
    const options = [...field.options];
    if (options.every((one) => !one.defaultSelected) && !field.multiple) return field.selectedIndex > 0;
    return options.some((one) => one.selected !== one.defaultSelected);
  }
  if (field instanceof HTMLInputElement && field.type === "file") return field.files.length > 0;
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) return field.value !== field.defaultValue;
  return field.textContent.trim() !== "";
}

// The address of a form; of a window that a script filled, that of the page that made it.
const addressOfForm = (address) => /^about:/i.test(address) && self.origin !== "null" ? self.origin + "/" : address;

function formOf(element, submitter, mayBeSent, meant) {
  const target = element instanceof HTMLLabelElement ? element.control || element : element;
  let form = target.form instanceof HTMLFormElement ? target.form : nearest(target, "form");
  let fields;
  let [action, method] = [document.URL, ""];
  if (form) {
    fields = [...formFields(form)].filter((one) => matches(one, FIELD));
    fields.push(...Element.prototype.querySelectorAll.call(form, EDITABLE));
    const own = submitter && attribute(submitter, "formaction") !== null;
    action = own ? submitter.formAction : formAction(form);
    method = submitter && attribute(submitter, "formmethod") !== null ? submitter.formMethod : formMethod(form);
  } else {
    for (let box = around(target); box && !fields?.length; box = around(box)) {
      fields = [...box.querySelectorAll(FIELD + ", " + EDITABLE)];
      form = box;
    }
    if (!fields?.length) return null;
  }
  return {
    action: addressOfForm(action), method, words: mayBeSent ? wordsOf(form) : [],
    fields: fields.slice(0, MOST_FIELDS).map((field) => ({
      name: (nameOf(field) || attribute(field, "name") || attribute(field, "id") || "").slice(0, 200),
      kind: String(field.type || "text"),
      filled: isFilled(field) || !!meant.get(field),
      secret: isSecret(field),
    })),
  };
}

const HEADING = "h1, h2, h3, h4, h5, h6, [role=heading]";
// Texts of a form that are told, and characters of each.
const MOST_WORDS = 80;
const LONGEST_WORDS = 200;
// What is told apart from the words of a form, or tells of what was done before.
const NO_WORDS = "option, textarea, [contenteditable], [role=status], [role=alert], [aria-live], output";

// The heading over a box: what stands before it, or before what it lies in.
function headingOver(box) {
  const ofSibling = (one) => (matches(one, HEADING) ? one : matches(one, "header, hgroup") ? one.querySelector(HEADING) : null);
  for (let at = box; at; at = around(at)) {
    for (let one = at.previousElementSibling; one; one = one.previousElementSibling) {
      const found = ofSibling(one);
      if (found?.checkVisibility()) return found;
    }
  }
  return null;
}

// The heading of a form and what a person reads in it, but for what stands in its fields.
function wordsOf(box) {
  // Around fields without a form of their own there may be much else.
  const leftOut = NO_WORDS + (box.localName === "form" ? "" : ", li, tr, article, [role=row], [role=listitem], [role=article]");
  const heading = headingOver(box);
  const words = [heading ? textOf(heading) : ""];
  const add = (text) => {
    const plain = withoutSecrets(tidy(text || ""));
    if (plain && words.length < MOST_WORDS) words.push(bounded(plain, LONGEST_WORDS));
  };
  const isLeftOut = (one) => SILENT.has(one.localName) || matches(one, leftOut) || !one.checkVisibility(PAINTED) && one.localName !== "optgroup";
  const visit = (node) => {
    if (node.nodeType === TEXT) return add(node.data);
    if (node.nodeType !== ELEMENT || isLeftOut(node) || words.length >= MOST_WORDS) return;
    if (node.localName === "input" && /^(submit|button|reset)$/.test(node.type)) add(node.value);
    else if (matches(node, FIELD)) add(node.placeholder || attribute(node, "aria-placeholder"));
    add(attribute(node, "aria-label"));
    if (node.localName === "img") add(node.alt);
    for (const child of childrenOf(node)) visit(child);
  };
  visit(box);
  return words;
}

// Characters of a value that is told.
const LONGEST_VALUE = 10_000;
// What of a form is not sent as a control of its own.
const NOT_SENT = "fieldset, output, object, button, input:is([type=submit], [type=button], [type=image], [type=reset])";

// What a button sends of its form, as data: all controls with a name, and their values now, or what is
// `meant` to stand in them. Null where that cannot be told beforehand.
function sendsOf(submitter, meant) {
  const form = submitter && submitter.form;
  if (!(form instanceof HTMLFormElement) || matches(submitter, "input[type=image]")) return null;
  const of = (own, name) => (attribute(submitter, own) ?? attribute(form, name) ?? "").trim().toLowerCase();
  if (of("formmethod", "method") === "dialog" || of("formenctype", "enctype") === "text/plain") return null;
  const all = [...formFields(form)].filter((one) => one === submitter || !matches(one, NOT_SENT));
  const named = all.filter((one) => attribute(one, "name"));
  const isPlain = (one) => !one.localName.includes("-") && one.type !== "file" && attribute(one, "dirname") === null;
  if (named.length > MOST_FIELDS || !named.every(isPlain)) return null;
  const controls = named.flatMap((one) => sentControls(one, meant.get(one)));
  const isLong = ({ value }) => value !== undefined && value.length > LONGEST_VALUE;
  return controls.length > MOST_FIELDS || controls.some(isLong) ? null : { controls };
}

// A control as it is sent; one for each that is chosen in a list.
function sentControls(field, meant) {
  const told = {
    name: attribute(field, "name").slice(0, 200), label: field.type === "hidden" ? "" : nameOf(field).slice(0, 200),
    kind: String(field.type || "text"), autocomplete: (attribute(field, "autocomplete") || "").slice(0, 100).toLowerCase(),
  };
  if (matches(field, ":disabled") || isTicked(field) && !field.checked) return [told];
  if (isSecret(field) || meant?.includes("⟦secret:")) return [{ ...told, value: "", secret: true }];
  if (!(field instanceof HTMLSelectElement)) {
    return [{ ...told, value: meant ?? field.value, shown: field.type === "radio" ? told.label : "" }];
  }
  const chosen = meant ? optionsMeant(field, meant).fit : [...field.options].filter((one) => one.selected && !one.disabled);
  const names = optionNames(field);
  const values = chosen.map((one) => ({ ...told, value: one.value, shown: names[one.index].slice(0, 200) }));
  return values.length ? values : [told];
}

// Adds what Enter may press in a field without a form.
function withButtons(form, field, isEnter) {
  if (form && isEnter && !field.form && matches(field, WRITABLE)) form.fields.push(...buttonsBeside(field));
  return form;
}

// What says yes and nothing else.
const SAYS_YES = /^(ok|okay|continue|proceed|weiter|fortfahren|continuer|continuar|continua|doorgaan|fortsätt|продолжить|继续|確定|确定|続ける|확인|계속)$/i;

// The form with what a plain yes is said to: the question of the dialog, as another button.
function withQuestion(form, element) {
  const dialog = SAYS_YES.test(nameOf(element)) && nearest(element, "dialog, [role=dialog], [role=alertdialog]");
  if (!dialog) return form;
  const [first = "", second = ""] = dialog.innerText.split("\n").filter((line) => line.trim());
  const name = withoutSecrets(`${nameOf(dialog)} ${first} ${second}`).slice(0, 200);
  const question = { name, kind: "submit", filled: false, secret: false };
  return form ? { ...form, fields: [...form.fields, question] } : { action: addressOfForm(document.URL), method: "", words: [], fields: [question] };
}

const SUBMITTERS = "button:not([type=button], [type=reset]), input[type=submit], input[type=image]";
const submitterOf = (element) => nearest(element, SUBMITTERS);

// The link that using an element follows, unless it is the page's way of writing a button.
function linkOf(element) {
  const link = nearest(element, LINK);
  if (!link) return null;
  const address = typeof link.href === "string" ? link.href : new URL(attribute(link, "href"), document.baseURI).href;
  if (/^javascript:/i.test(address)) return null;
  const [there, fragment] = address.split("#", 2);
  const within = fragment !== undefined && there === document.URL.split("#", 1)[0];
  return within && !(fragment && document.getElementById(fragment)) ? null : address;
}

// Attributes by which libraries make a link send something, or ask before it does.
const ORDERS = new RegExp("^(onclick|data-(method|turbo-method|post|put|delete|confirm|turbo-confirm|remote|ajax|submit)" +
  "|hx-(post|put|patch|delete|confirm)|(wire:|x-on:|v-on:|@|ng-|phx-)click.*)$", "i");

// Whether a link says that it does something besides going somewhere.
function isButtonLike(link) {
  const role = attribute(link, "role");
  if (role && /^(button|switch|checkbox|menuitem\w+|radio|option)$/i.test(role.trim())) return true;
  const names = Element.prototype.getAttributeNames.call(link);
  return names.some((name) => ORDERS.test(name) && !(/method$/i.test(name) && /^(|get)$/i.test(attribute(link, name))));
}

// Whether a link, or something in it, listens for clicks.
const listensForClicks = (link) => listening.has(link) || aroundListening.has(link);

// The name of a control, of a box its words, with what its pictures say where it has no letters.
function nameOrIcon(element) {
  const role = roleOf(element);
  const name = nameOf(element, role) || (TOLD.has(role) || OPERABLE.has(role) ? "" : labelOfBox(element, role));
  return /\p{L}/u.test(name) || matches(element, FIELD + ", " + EDITABLE) ? name : tidy(`${name} ${iconWords(element)}`);
}

const WRITABLE = "textarea, " + EDITABLE + ", input:not([type=checkbox], [type=radio], [type=submit], [type=button], " +
  "[type=image], [type=reset], [type=file], [type=range], [type=color], [type=hidden])";

function startsOnClick(element) {
  const link = linkOf(element);
  const target = element instanceof HTMLLabelElement ? element.control || element : element;
  const submitter = submitterOf(target);
  const starts = [];
  if (link) starts.push({ what: "follows", address: link });
  if (link && isButtonLike(nearest(element, LINK))) starts.push({ what: "acts" });
  if (link) return starts;
  if (submitter && (submitter.form || nearest(submitter, "form"))) return [{ what: "submits" }];
  if (matches(target, "select, option, input[type=range], input[type=color]") || isTicked(target)) return [{ what: "chooses" }];
  if (matches(target, WRITABLE)) return [{ what: "looking" }];
  return [{ what: "acts" }];
}

const LOOKING_KEYS = /^(Tab|Page(Up|Down)|Home|End|Arrow\w+|Shift|Control|Alt|Meta)$|^(Control|Meta)\+[ac]$/;
// With Control, Alt or Meta: what only changes text, or moves in it.
const EDITING_KEYS = /^(Control|Alt|Meta)\+([xvzy]|Backspace|Delete|Home|End|Arrow\w+)$/i;
const SAVING_KEY = /^(Control|Meta)\+s$/i;

// Height of a small panel, and least height of a text that has lines, in CSS pixels.
const PANEL = 300;
const SHEET = 200;
// Fields of which a form without a button submits only if it has no second one (HTML, implicit submission).
const LINES = "input:not([type=hidden], [type=checkbox], [type=radio], [type=submit], [type=button], [type=image], " +
  "[type=reset], [type=file], [type=range], [type=color])";

// Whether the browser submits a form when Enter is pressed in a field of one line.
function submitsOnEnter(field) {
  const { form } = field;
  if (!form) return false;
  const fields = [...formFields(form)];
  return fields.some((one) => matches(one, SUBMITTERS)) || Element.prototype.querySelector.call(form, SUBMITTERS) !== null ||
    fields.filter((one) => matches(one, LINES)).length < 2;
}

const CELLS = "[role=gridcell], [role=grid] td, [role=treegrid] td, td[tabindex]";

// What Enter starts in a field that is `filled`. Without a form, the page alone decides what comes
// of a line: a tag, a filter, the value of a cell; the buttons beside it tell (see `buttonsBeside`).
function startsOnEnter(field, filled, key) {
  const isPlain = key === "Enter" && !field.form;
  if (isPlain && nearest(field, CELLS)) return [{ what: "types" }];
  if (!matches(field, "textarea, " + EDITABLE)) {
    return [{ what: key !== "Enter" || submitsOnEnter(field) ? "submits" : "acts" }];
  }
  // A page to write on, and not a line to send.
  if (key === "Enter" && field.getBoundingClientRect().height >= SHEET) return [{ what: "types" }];
  // Where people write to each other, Enter sends what stands there.
  return [{ what: key === "Shift+Enter" || key === "Enter" && !filled ? "types" : "submits" }];
}

// Buttons after a field that has no form, in the largest box that could be a row or a panel of its
// own: Enter is often a way to press them. At most five.
function buttonsBeside(field) {
  let beside = [];
  for (let box = around(field); box; box = around(box)) {
    const all = (selector) => [...Element.prototype.querySelectorAll.call(box, selector)];
    if (box.getBoundingClientRect().height > PANEL || all(FIELD + ", " + EDITABLE).some((one) => !isWithin(one, field))) break;
    const isAfter = (one) => field.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING;
    beside = all("button, [role=button], input[type=submit], input[type=button], input[type=image]").filter(isAfter);
  }
  return beside.slice(0, 5).map((one) => ({ name: nameOf(one).slice(0, 200), kind: "submit", filled: false, secret: false }));
}

function startsOnKey(element, key) {
  const plain = key.replace(/Shift\+/g, "");
  const writes = matches(element, WRITABLE);
  if (/(^|\+)Enter$/.test(key)) return writes ? startsOnEnter(element, isFilled(element), key) : startsOnClick(element);
  // Saving belongs to editing: the page's own way to keep what was typed.
  if (SAVING_KEY.test(plain)) return [{ what: "types" }];
  if (plain === " " || plain === "Space") return writes ? [{ what: "types" }] : startsOnClick(element);
  if (LOOKING_KEYS.test(plain)) {
    const chooses = /^(Arrow|Home|End|Page)/.test(plain) && matches(element, "select, input[type=radio], input[type=range], input[type=number]");
    return [{ what: chooses ? "chooses" : "looking" }];
  }
  // Any other chord is a command of the page: save, send, delete.
  const isCommand = /^(Control|Alt|Meta)\+/.test(plain) && !EDITING_KEYS.test(plain);
  return [{ what: writes && !isCommand ? "types" : "acts" }];
}

// How much was typed into this document and stands there only.
const typed = () => {
  const fields = document.querySelectorAll(FIELD + ", " + EDITABLE);
  return JSON.stringify([...fields].filter((field) => isFilled(field)).length);
};

function startsOf(element, purpose, key) {
  switch (purpose) {
    case "click": return startsOnClick(element);
    case "type": return [{ what: "types" }];
    case "submit": return [{ what: "types" }, ...(matches(element, WRITABLE + ", " + CELLS) ? startsOnEnter(element, true, "Enter") : [{ what: "submits" }])];
    case "choose": return [{ what: "chooses", option: optionMeant(controlOf(numberOf(element)), key) }];
    case "key": return startsOnKey(element, key);
    // What a thing is dropped on says what becomes of it.
    case "drag": return [{ what: "acts" }, ...(key ? [{ what: "chooses", option: key }] : [])];
    case "menu": return [{ what: "acts" }];
    default: return [{ what: "looking" }];
  }
}

// What takes keys without being a field: cells of a grid, drawings, and fields of the page's making.
const TAKES_KEYS = new Set(["gridcell", "cell", "columnheader", "rowheader", "grid", "treegrid", "row", "textbox", "searchbox",
  "combobox", "spinbutton", "application", "canvas"]);

// Whether an element that can have the keyboard says that letters are text to it. To a box without
// a role they may be commands.
const takesKeys = (element) => element.hasAttribute("tabindex") && TAKES_KEYS.has(roleOf(element));

// How text gets into a field: by keys, by setting it, or not at all.
function kindOf(element) {
  if (element instanceof HTMLSelectElement) return "select";
  if (element instanceof HTMLInputElement) {
    if (/^(date|time|month|week|datetime-local|range|color)$/.test(element.type)) return "set";
    if (element.type === "file") return "file";
    return matches(element, WRITABLE) ? "line" : "control";
  }
  if (element instanceof HTMLTextAreaElement) return "text";
  if (nearest(element, EDITABLE) || document.designMode === "on") return "rich";
  if (roleOf(element) === "slider") return "slide";
  return takesKeys(element) ? "keys" : "control";
}

function statesAsWords(element, role) {
  const bits = statesOf(element, role) | (keyboard() === element ? STATE.focused : 0);
  const names = Object.keys(STATE).filter((name) => bits & STATE[name]);
  return names.map((name) => name.replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase()));
}

// What an input starts that may land on the element itself or on what takes its clicks.
function startsOfBoth(element, purpose, key) {
  const starts = startsOf(element, purpose, key);
  const core = purpose === "click" && coreOf(element);
  const known = new Set(starts.map((one) => JSON.stringify(one)));
  const more = core ? startsOf(core, purpose, key) : [];
  return [...starts, ...more.filter((one) => !known.has(JSON.stringify(one)))];
}

// States that matter for what an input of a purpose starts.
function statesFor(element, role, purpose) {
  const states = new Set(statesAsWords(element, role));
  // Only what is dragged is a thing and no control: a card among others, not the knob that is slid to pay.
  states.delete("draggable");
  const isCard = () => !OPERABLE.has(role) && Array.prototype.some.call(around(element)?.children || [], (one) => isSimilar(one, element));
  if (purpose === "drag" && (nearest(element, "[draggable=true], [aria-roledescription]") || isCard())) states.add("draggable");
  const link = purpose === "click" && nearest(element, LINK);
  if (link && listensForClicks(link)) states.add("clickable");
  return [...states];
}

// A key that is no text and no press, where no field has the keyboard: a command of the page as a
// whole, whatever it has beside.
const isShortcut = (element, purpose, key) =>
  purpose === "key" && !matches(element, WRITABLE) && !/(^|\+)(Enter| |Space|Delete|Backspace)$/.test(key) && !takesKeys(element);

// What something is dropped on, in words: the box that takes it, or the element itself.
function zoneOf(element) {
  let zone = element;
  while (zone && !droppedOn.has(zone)) zone = around(zone);
  return zone && nameOfZone(zone) || nameOrIcon(element) || bounded(withoutSecrets(tidy(element.textContent || "")), MAX_ZONE);
}

// Everything about an element for an input of a purpose. `point`: where it was pointed at.
function told(element, purpose, key, point) {
  const target = element instanceof HTMLLabelElement ? element.control || element : element;
  const view = globalThis.visualViewport;
  const role = roleOf(element) || element.localName;
  const submitter = submitterOf(coreOf(element) || target);
  const isEnter = purpose === "submit" || /(^|\+)Enter$/.test(key);
  const isCommand = isShortcut(element, purpose, key);
  const meant = new Map(purpose === "click" && key ? JSON.parse(key).map(([number, text]) => [controlOf(number), text]) : []);
  return {
    number: numberOf(element), ...point,
    left: view ? view.offsetLeft : 0, top: view ? view.offsetTop : 0,
    words: words(element),
    address: document.URL, origin: self.origin,
    role, name: isCommand ? "" : (purpose === "drop" ? zoneOf(element) : nameOrIcon(element)).slice(0, 500),
    states: statesFor(element, role, purpose),
    form: isCommand ? null : withQuestion(withButtons(formOf(element, submitter, purpose === "click" || isEnter, meant), target, isEnter), element),
    sends: purpose === "click" ? sendsOf(submitter, meant) : null,
    starts: startsOfBoth(element, purpose, key),
    kind: kindOf(target),
  };
}

// Whether the browser would drag an element by itself. A page may decide that at the press.
function isDraggable(number) {
  const element = elementOf(number);
  return JSON.stringify(!!element && !!nearest(element, "[draggable=true], a[href]:not([draggable=false]), img:not([draggable=false])"));
}

// By its number; scrolls it into view if it is not.
function aim(number, purpose, key) {
  const element = elementOf(number);
  if (!element) return JSON.stringify({ gone: true });
  if (["key", "set", "glance"].includes(purpose)) {
    return JSON.stringify(told(element, purpose === "set" ? "choose" : purpose, key, { x: 0, y: 0 }));
  }
  const loosely = purpose !== "click" && purpose !== "type" && purpose !== "submit";
  let point = pointOf(element, loosely);
  if (!point) {
    scrollTo(element);
    point = pointOf(element, loosely);
  }
  const facts = told(element, purpose, key, point || { x: 0, y: 0 });
  return JSON.stringify(point ? facts : { ...facts, covered: coverOf(element) || "nothing of it is painted" });
}

// By a point of this document: the element there, or the frame to go on in.
function aimAt(x, y, purpose, key) {
  const hit = hitAt(x, y);
  if (!hit) return JSON.stringify({ nothing: true });
  const frame = frameIds.get(hit);
  if (frame) return JSON.stringify({ frame, ...inside(hit, x, y) });
  const element = nearest(hit, USABLE) || hit;
  return JSON.stringify(told(element, purpose, key, { x, y }));
}

// A point of the picture in this, the main document; scaled as a look scales it.
function fromPicture(x, y, widest) {
  const view = globalThis.visualViewport;
  const zoom = Math.min(widest / innerWidth, 1) * view.scale;
  return { x: view.offsetLeft + x / zoom, y: view.offsetTop + y / zoom };
}

function aimAtPicture(x, y, widest, purpose, key) {
  const point = fromPicture(x, y, widest);
  return aimAt(point.x, point.y, purpose, key);
}

// Where the content of a frame's element lies, and its scale.
function boxOfContent(element) {
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  const across = element.offsetWidth ? box.width / element.offsetWidth : 1;
  const down = element.offsetHeight ? box.height / element.offsetHeight : 1;
  return {
    x: box.x + (element.clientLeft + parseFloat(style.paddingLeft)) * across,
    y: box.y + (element.clientTop + parseFloat(style.paddingTop)) * down, across, down,
  };
}

function inside(element, x, y) {
  const content = boxOfContent(element);
  return { x: (x - content.x) / content.across, y: (y - content.y) / content.down };
}

// A point of the document in a frame as a point of this one, scrolled into view.
function through(id, x, y) {
  const element = frameOwners.get(id)?.deref();
  if (!element?.isConnected) return JSON.stringify({ gone: true });
  const at = () => {
    const content = boxOfContent(element);
    return { x: content.x + x * content.across, y: content.y + y * content.down };
  };
  let point = at();
  if (hitAt(point.x, point.y) !== element) {
    element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
    point = at();
    if (hitAt(point.x, point.y) !== element) {
      scrollBy({ left: point.x - innerWidth / 2, top: point.y - innerHeight / 2, behavior: "instant" });
      point = at();
    }
  }
  const hit = hitAt(point.x, point.y);
  const { offsetLeft: left, offsetTop: top, width, height } = visualViewport;
  const isOutside = point.x < left || point.y < top || point.x >= left + width || point.y >= top + height;
  const seen = globalThis.top === globalThis && isOutside ? "the edge of the window, which is zoomed in," : null;
  const covered = hit === element ? seen : hit ? words(hit) : "nothing of it is painted";
  return JSON.stringify({ ...point, left, top, covered });
}

// The element that has the keyboard, or that would have it.
function keyboard() {
  let at = document.activeElement;
  for (let root = at && rootOf(at); root?.activeElement; root = rootOf(at)) at = root.activeElement;
  return at || document.documentElement;
}

function aimAtFocus(purpose, key) {
  const element = keyboard();
  if (!element) return JSON.stringify({ nothing: true });
  const frame = frameIds.get(element);
  return JSON.stringify(frame ? { frame, x: 0, y: 0 } : told(element, purpose, key, { x: 0, y: 0 }));
}

// Frames by their id, as `frameIds` has them by their element.
const frameOwners = new Map();

function own(element, id) {
  frameIds.set(element, id);
  frameOwners.set(id, new WeakRef(element));
}
