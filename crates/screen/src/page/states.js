// What is true of an element, as bits in the order of the contract's states (view.rs).
const STATE = Object.fromEntries(`focused checked mixed selected pressed expanded collapsed disabled
  readOnly required invalid opens masked scrolls outOfView covered draggable multiple busy
  clickable droppable`.split(/\s+/).map((name, bit) => [name, 1 << bit]));

const CHECKABLE = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio", "option", "treeitem"]);

const DISABLING = new Set(["button", "input", "select", "textarea", "option", "optgroup", "fieldset"]);
// Elements that have states without any attribute.
const BY_THEMSELVES = new Set(["input", "select", "textarea", "option", "summary"]);

function isFalse(value) {
  return value === null || value === "" || value === "false";
}

// Of the element alone, not of where it stands.
function statesOf(element, role) {
  let bits = 0;
  if (!element.hasAttributes() && !BY_THEMSELVES.has(element.localName)) {
    return element.localName === "button" && element.matches(":disabled") ? STATE.disabled : 0;
  }
  const aria = (name) => element.getAttribute(`aria-${name}`);
  const name = element.localName;
  if (element.hasAttribute("aria-busy") && aria("busy") === "true") bits |= STATE.busy;
  if (element.getAttribute("draggable") === "true") bits |= STATE.draggable;
  if (name === "input" && (element.type === "checkbox" || element.type === "radio")) {
    if (element.indeterminate) bits |= STATE.mixed;
    else if (element.checked) bits |= STATE.checked;
  } else if (CHECKABLE.has(role)) {
    if (aria("checked") === "mixed") bits |= STATE.mixed;
    else if (aria("checked") === "true") bits |= STATE.checked;
  }
  if (name === "option" ? element.selected : aria("selected") === "true" || !isFalse(aria("current"))) bits |= STATE.selected;
  if (aria("pressed") === "true") bits |= STATE.pressed;
  if (aria("pressed") === "mixed") bits |= STATE.mixed;
  const expanded = aria("expanded");
  if (expanded === "true") bits |= STATE.expanded;
  if (expanded === "false") bits |= STATE.collapsed;
  if (name === "summary" && role === "button") bits |= hostOrParent(element).open ? STATE.expanded : STATE.collapsed;
  if (DISABLING.has(name) && element.matches(":disabled") || aria("disabled") === "true") bits |= STATE.disabled;
  const popup = aria("haspopup");
  if (!isFalse(popup) || element.hasAttribute("popovertarget") || element.hasAttribute("list")) bits |= STATE.opens;
  if (aria("multiselectable") === "true" || aria("multiline") === "true") bits |= STATE.multiple;
  if (name === "input" || name === "textarea" || name === "select") bits |= fieldStates(element);
  else if (role === "textbox" && element.isContentEditable) bits |= STATE.multiple;
  if (aria("required") === "true") bits |= STATE.required;
  if (aria("readonly") === "true") bits |= STATE.readOnly;
  if (!isFalse(aria("invalid"))) bits |= STATE.invalid;
  return bits;
}

function fieldStates(field) {
  let bits = 0;
  if (field.required) bits |= STATE.required;
  // What is ticked can be ticked all the same.
  if (field.readOnly && field.matches(":read-only") && !/^(checkbox|radio)$/.test(field.type)) bits |= STATE.readOnly;
  if (field.localName === "textarea" || field.multiple) bits |= STATE.multiple;
  if (field.localName === "select" && !field.multiple && field.size <= 1) bits |= STATE.opens;
  // A required field that nobody has touched yet is not wrong.
  if (field.matches(":user-invalid") || field.value !== "" && field.matches(":invalid")) bits |= STATE.invalid;
  if (isSecret(field)) bits |= STATE.masked;
  return bits;
}
