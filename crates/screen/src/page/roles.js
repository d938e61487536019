// Roles: a valid explicit one first, else what HTML-AAM says of the element. Some things that
// people tell apart and ARIA does not have names of our own: canvas, video, audio, iframe, file,
// color, date, time, month, week, datetime.
const ROLES = new Set(`alert alertdialog application article banner blockquote button caption cell
  checkbox columnheader combobox complementary contentinfo definition dialog directory document feed
  figure form grid gridcell group heading img image link list listbox listitem log main marquee math
  menu menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph
  presentation progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox
  separator slider spinbutton status switch tab table tablist tabpanel term textbox timer toolbar
  tooltip tree treegrid treeitem generic code`.split(/\s+/));

// What a person uses.
const OPERABLE = new Set(`button checkbox combobox link listbox menuitem menuitemcheckbox
  menuitemradio option radio searchbox slider spinbutton switch tab textbox treeitem file color date
  time month week datetime`.split(/\s+/));

// What holds other things, or is something to look at. All other roles say nothing worth a line.
const TOLD = new Set(`alert alertdialog application article banner cell columnheader complementary
  contentinfo definition dialog feed figure form grid gridcell group heading img list listitem log
  main math menu menubar meter navigation progressbar radiogroup region row rowheader scrollbar search
  status table tablist tabpanel term timer toolbar tooltip tree treegrid canvas video audio
  iframe`.split(/\s+/));

// Containers that are left out when nothing is in them.
const HOLLOW = new Set(`article banner cell columnheader complementary contentinfo definition dialog
  feed figure form grid gridcell group list listitem log main menu menubar navigation radiogroup
  region row rowheader search status table tablist tabpanel term toolbar tree treegrid alert
  alertdialog timer tooltip application`.split(/\s+/));

const INPUT_ROLES = {
  button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox",
  radio: "radio", range: "slider", number: "spinbutton", search: "searchbox", color: "color",
  file: "file", date: "date", time: "time", month: "month", week: "week", "datetime-local": "datetime",
};

const NATIVE = {
  article: "article", aside: "complementary", audio: "audio", button: "button", canvas: "canvas",
  dd: "definition", details: "group", dialog: "dialog", dt: "term", fieldset: "group",
  figure: "figure", h1: "heading", h2: "heading", h3: "heading", h4: "heading", h5: "heading",
  h6: "heading", iframe: "iframe", frame: "iframe", li: "listitem", main: "main", math: "math",
  menu: "list", meter: "meter", nav: "navigation", ol: "list", optgroup: "group", option: "option",
  output: "status", progress: "progressbar", search: "search", table: "table", td: "cell",
  textarea: "textbox", tr: "row", ul: "list", video: "video",
};

const SECTIONING = "article, aside, main, nav, section";

function nativeRole(element) {
  const name = element.localName;
  switch (name) {
    case "input":
      if (element.type === "hidden") return "";
      return INPUT_ROLES[element.type] || (element.hasAttribute("list") ? "combobox" : "textbox");
    case "a": case "area": return element.href?.baseVal ?? element.hasAttribute("href") ? "link" : "";
    case "select": return element.multiple || element.size > 1 ? "listbox" : "combobox";
    case "summary": return element.parentNode?.localName === "details" ? "button" : "";
    case "img": case "svg": return "img";
    case "header": return element.closest(SECTIONING) ? "" : "banner";
    case "footer": return element.closest(SECTIONING) ? "" : "contentinfo";
    case "th": return element.scope === "row" || element.scope === "rowgroup" ? "rowheader" : "columnheader";
    case "section": return isLabelled(element) ? "region" : "";
    case "form": return isLabelled(element) ? "form" : "";
    default: return NATIVE[name] || "";
  }
}

function isLabelled(element) {
  return element.hasAttribute("aria-label") || element.hasAttribute("aria-labelledby") || element.hasAttribute("title");
}

// The outermost element that is edited as rich text.
function isEditingHost(element) {
  if (!element.hasAttribute("contenteditable") || !element.isContentEditable) return false;
  const parent = hostOrParent(element);
  return !parent?.isContentEditable;
}

// Of the element, or empty if it is nothing but a box.
function roleOf(element) {
  const native = nativeRole(element);
  const explicit = element.getAttribute("role");
  if (explicit) {
    for (const role of explicit.toLowerCase().split(/\s+/)) {
      if (!ROLES.has(role)) continue;
      if (role === "none" || role === "presentation" || role === "generic") {
        // What can be used stays what it is, whatever the page says.
        return OPERABLE.has(native) ? native : "";
      }
      // The box around a field that is a list to choose from, too.
      if (role === "combobox" && !native && element.querySelector("input[role=combobox]")) return "";
      return role === "image" ? "img" : role;
    }
  }
  if (!native && isEditingHost(element)) return "textbox";
  return native;
}
