// What a person could use of this document, by rules that know nothing of our reading. It is called
// with how many elements have a role of use for the browser, how many can only have the keyboard,
// and then these, those, and the ones with listeners for pointers.
function usable(roles, focusable, ...given) {
  const found = new Map();
  const add = (element, why) => {
    if (!(element instanceof Element) || !element.isConnected) return;
    const label = element.closest("label");
    // A label stands for its field.
    const one = label && label === element && label.control || element;
    if (!found.has(one)) found.set(one, new Set());
    found.get(one).add(why);
  };
  given.forEach((element, at) => {
    if (at < roles) add(element, "role");
    else if (at >= roles + focusable) add(element, "listener");
    else add(element, element?.tabIndex >= 0 ? "keyboard" : "script");
  });
  const deeply = function* (root) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      if (element.shadowRoot) yield* deeply(element.shadowRoot);
    }
  };
  const parentOf = (element) => element.assignedSlot || element.parentElement || element.getRootNode().host;
  for (const element of deeply(document)) {
    const parent = parentOf(element);
    if (parent && getComputedStyle(element).cursor === "pointer" && getComputedStyle(parent).cursor !== "pointer") add(element, "cursor");
  }
  for (const root of [document.documentElement, document.body]) found.delete(root);

  const box = (element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return [left, top, width, height];
  };
  const painted = (element) => {
    const all = [element, ...element.querySelectorAll("*")].map((one) => one.getBoundingClientRect()).filter((one) => one.width && one.height);
    if (!all.length) return box(element);
    const [left, top] = [Math.min(...all.map((one) => one.left)), Math.min(...all.map((one) => one.top))];
    return [left, top, Math.max(...all.map((one) => one.right)) - left, Math.max(...all.map((one) => one.bottom)) - top];
  };
  const hit = (x, y) => {
    let at = document.elementFromPoint(x, y);
    for (let inner; at?.shadowRoot && (inner = at.shadowRoot.elementFromPoint(x, y)) && inner !== at;) at = inner;
    return at;
  };
  const holds = (outer, inner) => {
    for (let at = inner; at; at = parentOf(at)) if (at === outer || at instanceof HTMLLabelElement && at.control === outer) return true;
    return false;
  };
  const SPREAD = [.5, .15, .85, .3, .7];
  // The box around the pixel in which pages keep native fields for keys and screen readers.
  const around = (element) => {
    let at = parentOf(element);
    for (let level = 0; at && level < 4; level += 1, at = parentOf(at)) {
      const { width, height } = at.getBoundingClientRect();
      if (width <= 2 && height <= 2) return element.tabIndex >= 0 ? [parentOf(at)] : [];
    }
    return [];
  };
  const partsOf = (element) => [element, ...element.labels || [], ...element.matches("input, select, textarea") ? around(element) : []];
  const isHit = (element) => {
    const parts = partsOf(element);
    for (const one of parts) {
      for (const rect of one.getClientRects()) {
        for (const across of SPREAD) for (const down of SPREAD) {
          const there = hit(rect.left + rect.width * across, rect.top + rect.height * down);
          if (holds(element, there) || parts.length > 1 && one !== element && holds(one, there)) return true;
        }
      }
    }
    return false;
  };
  const isInView = ([left, top, width, height]) => left < innerWidth && top < innerHeight && left + width > 0 && top + height > 0;

  const list = [...found].map(([element, why]) => {
    const own = box(element);
    const labels = [...element.labels || []];
    const inside = [...found.keys()].filter((other) => other !== element && element.contains(other)).length;
    const word = element.getAttribute("role") || element.localName;
    const says = element.getAttribute("aria-label") || element.title || element.innerText || element.placeholder || "";
    return {
      element, why: [...why].sort().join("+"), inside,
      what: `${word}${element.type ? `[${element.type}]` : ""}.${[...element.classList].slice(0, 3).join(".")} “${says.replace(/\s+/g, " ").trim().slice(0, 50)}”`,
      boxes: [...partsOf(element).map(box), ...element.firstElementChild ? [painted(element)] : []],
      has_keyboard: document.activeElement === element,
      is_sized: own[2] >= 1 && own[3] >= 1 || labels.some((one) => isSized(box(one))),
      in_view: isInView(own) || labels.some((one) => isInView(box(one))),
      hit: false, scripted: false,
    };
  });
  function isSized([, , width, height]) { return width >= 1 && height >= 1; }
  // First what is there as it stands, then what has to be scrolled to: that moves things.
  for (const one of list) {
    if (!one.is_sized) continue;
    one.hit = isHit(one.element);
    one.seen = one.hit;
  }
  for (const one of list) {
    if (one.hit || !one.is_sized || !one.element.isConnected) continue;
    for (const part of partsOf(one.element)) {
      if (one.hit) break;
      const hidden = [];
      for (let at = parentOf(part); at; at = parentOf(at)) {
        const { overflowX, overflowY } = getComputedStyle(at);
        if (/hidden|clip/.test(overflowX + overflowY) && at !== document.body && at !== document.documentElement) {
          hidden.push([at, overflowX, overflowY, at.scrollLeft, at.scrollTop]);
        }
      }
      part.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      one.hit = isHit(one.element);
      // Nobody but a script can scroll what hides its overflow.
      one.scripted = hidden.some(([at, across, down, left, top]) =>
        /hidden|clip/.test(across) && at.scrollLeft !== left || /hidden|clip/.test(down) && at.scrollTop !== top);
      if (one.scripted) one.hit = false;
    }
  }
  return JSON.stringify(list.map(({ element, ...told }) => told));
}
