//! Scripts inside a page, in an isolated world that the page can neither see nor change. They are
//! installed before a document's first script and answer in JSON text.

/// The script, run in a page's own world, that reports the page's requests for permissions.
pub(crate) const ASKS: &str = include_str!("page/asks.js");

/// The scripts, joined to one function that defines `gyrus` in the isolated world of a page.
pub(crate) const SOURCE: &str = concat!(
    "(() => { 'use strict'; if (globalThis.gyrus) return;\n",
    include_str!("page/identity.js"),
    include_str!("page/tree.js"),
    include_str!("page/roles.js"),
    include_str!("page/secrets.js"),
    include_str!("page/generated.js"),
    include_str!("page/names.js"),
    include_str!("page/options.js"),
    include_str!("page/states.js"),
    include_str!("page/geometry.js"),
    include_str!("page/text.js"),
    include_str!("page/uses.js"),
    include_str!("page/tell.js"),
    include_str!("page/walk.js"),
    "\nconst hands = (() => {\n",
    include_str!("page/aim.js"),
    include_str!("page/guard.js"),
    include_str!("page/change.js"),
    include_str!("page/blank.js"),
    include_str!("page/settle.js"),
    include_str!("page/edit.js"),
    "\nreturn { aim, aimAt, aimAtPicture, aimAtFocus, isDraggable, through, own, prepare, begin, end, change, settled, framesInView, stillBlank, holds,\n",
    "  setValue, setBeside, slide, beforeKeys, afterFirst, typedText, selectAll, toEnd, toEndUnlessSelected, focus, focusSoon, select, read, bytes, scrollState, scrolled, controlOf, passed, typed, words, report }; })();\n",
    "\nglobalThis.gyrus = { walk, walkOncePainted, hear, newRoots, suspects, adopt, secretBoxes, elementOf, choose,\n",
    "  ...hands };\n",
    "})();",
);
