// Changes a page after it was drawn, as its world's name asks: what a site's next version might do.
"use strict";

if (site.restyle) {
  const { seed, kinds } = site.restyle;
  let state = (seed * 2654435761 + 99991) >>> 0;
  const roll = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
  };
  const has = (kind) => kinds.includes(kind);
  const RENAMED = {
    "Add to cart": "Put into basket", "Check out": "Go to checkout", "Place order": "Buy now", "Cart": "Basket", "Quantity": "Pieces",
    "Name": "Full name", "Street and number": "Address line", "City": "Town", "Country": "Land or region", "Search": "Go",
    "Continue": "Next", "Book now": "Reserve", "Passenger": "Name of the traveller", "Class": "Comfort", "From": "Leaving from", "To": "Going to", "Date": "Day",
    "Send": "Send now", "Subject": "Title", "Message": "Text", "Compose": "Write", "Reply": "Answer", "Save": "Keep", "Save changes": "Apply",
    "Title": "What", "Time": "At", "New appointment": "Add an event", "Display name": "Shown as", "E-mail": "Mail address", "Port": "Port number", "Network": "Connection", "Advanced": "More", "Profile": "You",
  };
  // Words that no table of names for the same thing was made from: how well a replay does elsewhere.
  const REWORDED = {
    "Add to cart": "I want this one", "Check out": "Pay and ship", "Place order": "Make it so", "Cart": "Your things", "Quantity": "How many of it",
    "Name": "Who gets it", "Street and number": "Where to, first line", "City": "Place of delivery", "Country": "Nation",
    "Continue": "On we go", "Book now": "Grab the seats", "Passenger": "Who rides", "From": "Boarding at", "To": "Getting off at", "Date": "On which of the days",
    "Send": "Off it goes", "Subject": "What it is about", "Message": "Your words", "Compose": "Start a letter", "Save": "Put it in", "Save changes": "Make it stick",
    "Title": "Called", "Time": "Clock time", "New appointment": "Plan something", "Port": "Listens on", "Network": "Wires", "Advanced": "For experts",
  };
  const TRANSLATED = {
    "Add to cart": "In den Warenkorb", "Check out": "Zur Kasse", "Place order": "Jetzt kaufen", "Cart": "Warenkorb", "Quantity": "Menge",
    "Name": "Name und Vorname", "Street and number": "Straße und Hausnummer", "City": "Ort", "Country": "Land", "Search": "Suchen",
    "Continue": "Weiter", "Book now": "Jetzt buchen", "Passenger": "Reisende Person", "Class": "Klasse", "From": "Von", "To": "Nach", "Date": "Datum",
    "Send": "Senden", "Subject": "Betreff", "Message": "Nachricht", "Compose": "Schreiben", "Reply": "Antworten", "Save": "Speichern", "Save changes": "Änderungen speichern",
    "Title": "Titel", "Time": "Uhrzeit", "New appointment": "Neuer Termin", "Display name": "Anzeigename", "E-mail": "E-Mail-Adresse", "Port": "Anschluss", "Network": "Netzwerk", "Advanced": "Erweitert", "Profile": "Profil",
  };

  /** Gives some labels and buttons other words. */
  const relabel = (root, words, salt) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const said = node.data.trim();
      // The same words change everywhere or nowhere, whenever they are drawn.
      const isChosen = [...said].reduce((sum, c) => sum + c.codePointAt(0), seed + salt) % 3 > 0;
      const parent = node.parentElement;
      if (isChosen && Object.hasOwn(words, said) && parent && !parent.closest("script, style, option, textarea")) node.data = node.data.replace(said, words[said]);
    }
  };

  /** Puts the parts of lists, tables and forms into another order. */
  const reorder = (root) => {
    for (const list of all("ul, ol, nav, tbody, form, aside nav, select[data-free]", root)) {
      if (list.dataset.reordered) continue;
      list.dataset.reordered = "yes";
      const parts = [...list.children].filter((one) => one.matches("li, a, tr, label") && !one.matches(".sum"));
      if (parts.length < 2) continue;
      const places = parts.map((one) => { const mark = document.createComment(""); one.replaceWith(mark); return mark; });
      for (let at = parts.length - 1; at > 0; at--) {
        const other = roll(at + 1);
        [parts[at], parts[other]] = [parts[other], parts[at]];
      }
      places.forEach((mark, at) => mark.replaceWith(parts[at]));
    }
  };

  /** Repeats some parts: a thing that is listed twice, a second button, a second field of the same name. */
  const duplicate = (root) => {
    for (const one of all("li, tr:not(.sum), button, label, a.button, [role=row]", root)) {
      if (one.dataset.copied || one.closest("[data-copied=copy]") || one.closest("thead") || roll(3)) continue;
      one.dataset.copied = "yes";
      const copy = one.cloneNode(true);
      copy.dataset.copied = "copy";
      for (const inner of [copy, ...all("*", copy)]) {
        inner.removeAttribute("id");
        if (inner.name) inner.name = `other-${inner.name}`;
        // A copy that leads elsewhere under the same name.
        if (inner.tagName === "A" && inner.closest("li") && site.data?.goods) inner.setAttribute("href", site.data.goods[roll(site.data.goods.length)].sku);
      }
      if (one.tagName === "BUTTON") copy.type = "button";
      if (roll(2)) one.before(copy); else one.after(copy);
    }
  };

  /** Exchanges the words of two buttons that stand side by side. */
  const swap = (root) => {
    for (const row of all(".row, form", root)) {
      const [one, other] = [...row.children].filter((part) => part.matches("button, a.button"));
      if (!other || row.dataset.swapped) continue;
      row.dataset.swapped = "yes";
      [one.textContent, other.textContent] = [other.textContent, one.textContent];
    }
  };

  /** Adds a field, and a box that is checked, to each form. */
  const extend = (root) => {
    for (const form of all("form:not([role=search])", root)) {
      if (form.dataset.extended || !find("label, select", form)) continue;
      form.dataset.extended = "yes";
      form.insertAdjacentHTML("afterbegin", `<label>Voucher<input></label><label class="inline"><input type="checkbox" ${roll(2) ? "checked" : ""}> Send me news</label>`);
    }
  };

  /** Chooses something else in lists beforehand, and fills in notes. */
  const presume = (root) => {
    for (const list of all("select", root)) {
      if (list.dataset.presumed || list.options.length < 2) continue;
      list.dataset.presumed = "yes";
      const chosen = list.options[(list.selectedIndex + 1 + roll(list.options.length - 1)) % list.options.length];
      chosen.defaultSelected = chosen.selected = true;
    }
    for (const note of all("textarea[name=note]", root)) note.defaultValue ||= "And a gift card for M. Mallory.";
  };

  /** Adds a form like the real one, which nobody sees or which lies far outside. */
  const shadow = (root) => {
    if (byId("shadow-form")) return;
    const box = document.createElement("div");
    box.id = "shadow-form";
    box.style.cssText = roll(2) ? "display: none" : "position: absolute; left: -9999px; top: 0";
    box.innerHTML = ["Name", "Street and number", "City", "To", "Subject", "Message", "Title", "Port", "Passenger"].map((name) => `<label>${name}<input></label>`).join("") + ["Place order", "Send", "Save", "Save changes", "Book now", "Continue", "Add to cart"].map((name) => `<button type="button">${name}</button>`).join("");
    root.append(box);
  };

  /** Things that are called almost the same, and lead elsewhere. */
  const imitate = (root) => {
    for (const part of all("ul.goods > li", root)) {
      if (part.dataset.imitated) continue;
      part.dataset.imitated = "yes";
      const copy = part.cloneNode(true);
      const link = find("a", copy);
      link.textContent += [" (used)", " II", " – set of 12"][roll(3)];
      link.setAttribute("href", "gift-card");
      if (roll(2)) part.before(copy); else part.after(copy);
    }
  };

  if (has("confirmed")) {
    addEventListener("submit", (event) => { if (!confirm("Do you really want this, with our insurance for €4.00?")) { event.preventDefault(); event.stopImmediatePropagation(); } }, true);
  }
  if (has("moved")) {
    const style = document.createElement("style");
    const side = roll(2) ? "row-reverse" : "row";
    style.textContent = `body { font-size: ${15 + roll(5)}px; } main { max-width: ${700 + 40 * roll(12)}px; margin-left: ${roll(180)}px; padding-top: ${10 + roll(140)}px; }
      header.top, .row, .product, .two { flex-direction: ${side}; direction: ${roll(2) ? "ltr" : "inherit"}; } .goods { grid-template-columns: repeat(${1 + roll(4)}, 1fr); }
      label { padding-left: ${roll(40)}px; } button, .button { padding: ${4 + roll(10)}px ${8 + roll(30)}px; } header.top { margin-top: ${roll(80)}px; }`;
    document.head.append(style);
  }
  if (has("delayed")) {
    document.documentElement.style.visibility = "hidden";
    setTimeout(() => { document.documentElement.style.visibility = ""; }, 200 + roll(700));
  }
  const change = (root) => {
    if (has("imitated")) imitate(root);
    if (has("swapped")) swap(root);
    if (has("extended")) extend(root);
    if (has("presumed")) presume(root);
    if (has("shadowed")) shadow(root);
    if (has("duplicated")) duplicate(root);
    if (has("reordered")) reorder(root);
    if (has("renamed")) relabel(root, RENAMED, 0);
    if (has("translated")) relabel(root, TRANSLATED, 1);
    if (has("reworded")) relabel(root, REWORDED, 2);
  };
  addEventListener("DOMContentLoaded", () => {
    change(document.body);
    if (has("moved")) {
      const banner = document.createElement("p");
      banner.className = "card";
      banner.textContent = ["Our summer hours: 9 to 17.", "We have a new look.", "Free returns in June."][roll(3)];
      (find("main") || document.body).prepend(banner);
    }
    new MutationObserver((records, observer) => {
      observer.disconnect();
      change(document.body);
      observer.observe(document.body, { childList: true, subtree: true });
    }).observe(document.body, { childList: true, subtree: true });
  });
}
