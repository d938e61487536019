//! Modules do not import each other in circles, so that each can be read after those it stands on.
//!
//! The graph has one node a file. A path in its code leads to the file that defines the item, not
//! to those that export it again; that a file exports an item again makes it depend on nothing.
//! What a file declares (`mod`) is not a dependence either, and its tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, lexer, source::Source};

/// Number of modules that are part of a circle, by the crate's folder. A crate that is not listed
/// has none. The list only shrinks: whoever dissolves a circle lowers the number.
const EXCEPTIONS: [(&str, usize); 7] = [
    ("contract", 4),
    // A loop takes a run, a run holds the kernel, and the kernel creates the loops of child runs.
    ("kernel", 4),
    ("lab", 7),
    ("loops", 6),
    ("models", 10),
    ("process", 8),
    ("tools", 7),
];
/// This file, for findings about the list.
const PATH: &str = "xtask/src/tidy/circles.rs";

/// A file as a node of the graph.
struct Module<'a> {
    source: &'a Source,
    /// The path from the root of the crate, as `effects::call`; `crate` for the root.
    name: String,
    /// The items that its `use` lines bring into its scope, by the name they have there.
    imports: BTreeMap<&'a str, Import<'a>>,
    /// Paths in its code outside of `use` lines, of one segment or more.
    paths: Vec<(Vec<&'a str>, usize)>,
}

struct Import<'a> {
    path: Vec<&'a str>,
    line: usize,
    is_public: bool,
}

/// The modules of a crate by their names.
type Crate<'a> = BTreeMap<String, Module<'a>>;

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// The name of a module.
    Module(String),
    /// The name of the module that defines the item.
    Item(String),
}

/// The modules that a module depends on, each with a line of the importing file.
type Edges = BTreeMap<String, usize>;

/// Checks the modules of every crate.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    check_except(sources, &EXCEPTIONS)
}

fn check_except(sources: &[Source], exceptions: &[(&str, usize)]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Crate<'_>> = BTreeMap::new();
    for source in sources {
        if let Some(name) = module_name(source).filter(|_| !source.is_test(1)) {
            let modules = crates.entry(source.crate_folder()).or_default();
            modules.insert(name.clone(), Module::read(source, name));
        }
    }
    let mut findings = Vec::new();
    for (folder, modules) in crates {
        let edges: BTreeMap<&str, Edges> = modules
            .iter()
            .map(|(name, module)| (name.as_str(), edges(&modules, module)))
            .collect();
        let circles = circles(&edges);
        let found: usize = circles.iter().map(Vec::len).sum();
        let listed = exceptions.iter().find(|(name, _)| *name == folder);
        let allowed = listed.map_or(0, |(_, modules)| *modules);
        if found > allowed {
            let circles = circles.iter();
            findings.extend(circles.map(|circle| finding(&modules, &edges, circle)));
        } else if found < allowed {
            let message = format!("{found} modules of {folder} are in circles: write that");
            findings.push(Finding::new(PATH, None, message));
        }
    }
    findings
}

/// One sentence for a circle: each of its files with one of the imports that close it.
fn finding(modules: &Crate<'_>, edges: &BTreeMap<&str, Edges>, circle: &[&str]) -> Finding {
    let imports: Vec<String> = circle
        .iter()
        .filter_map(|name| {
            let (imported, line) = edges[name]
                .iter()
                .find(|(imported, _)| circle.contains(&imported.as_str()))?;
            Some(format!(
                "{}:{line} imports `{imported}`",
                modules[*name].source.path
            ))
        })
        .collect();
    let message = format!(
        "{} modules import each other in circles ({}): move what several of them need into one \
         that needs none of them",
        circle.len(),
        imports.join(", ")
    );
    Finding::new(&modules[circle[0]].source.path, None, message)
}

/// The name of the module that a file is. `None` for files that are not part of a crate's tree.
fn module_name(source: &Source) -> Option<String> {
    let path = source.path.strip_prefix("crates/").unwrap_or(&source.path);
    let (_, path) = path.split_once("/src/")?;
    let stem = path.strip_suffix(".rs")?;
    let name = match stem.rsplit_once('/') {
        None if matches!(stem, "lib" | "main") => "crate",
        Some((folder, "mod")) => folder,
        _ => stem,
    };
    Some(name.replace('/', "::"))
}

impl<'a> Module<'a> {
    fn read(source: &'a Source, name: String) -> Self {
        let mut module = Self {
            source,
            name,
            imports: BTreeMap::new(),
            paths: Vec::new(),
        };
        let tokens = tokens(source);
        let mut at = 0;
        while at < tokens.len() {
            let (token, line) = tokens[at];
            let next = tokens.get(at + 1).map_or("", |(token, _)| token);
            if token == "use" && next != "<" {
                let is_public = at > 0 && matches!(tokens[at - 1].0, "pub" | ")");
                at = module.read_use(&tokens, at + 1, Vec::new(), is_public);
            } else if token == "in" && at > 1 && tokens[at - 2].0 == "pub" {
                // The path in `pub(in …)` says who may see the item, not what it needs.
                at = end_of_path(&tokens, at + 1);
            } else if matches!(token, "." | "mod") {
                // The name of a field, a method or a module follows.
                at += 2;
            } else if is_name(token) {
                let end = end_of_path(&tokens, at);
                let names = tokens[at..end].iter().map(|(token, _)| *token);
                let path = names.filter(|token| *token != "::").collect();
                module.paths.push((path, line));
                at = end;
            } else {
                at += 1;
            }
        }
        module
    }

    /// Reads the tree of a `use` that starts at `at` and returns where it ends.
    fn read_use(
        &mut self,
        tokens: &[(&'a str, usize)],
        mut at: usize,
        mut path: Vec<&'a str>,
        is_public: bool,
    ) -> usize {
        let mut name = None;
        while let Some((token, line)) = tokens.get(at).copied() {
            at += 1;
            match token {
                "{" => {
                    while tokens.get(at).is_some_and(|(token, _)| *token != "}") {
                        at = self.read_use(tokens, at, path.clone(), is_public);
                        if tokens.get(at).is_some_and(|(token, _)| *token == ",") {
                            at += 1;
                        }
                    }
                    return at + 1;
                }
                "*" => {
                    path.push(token);
                    self.paths.push((path, line));
                    return at;
                }
                "as" => name = tokens.get(at).map(|(token, _)| *token),
                "::" => {}
                _ if is_name(token) && name.is_some() => {}
                "self" if !path.is_empty() => {}
                _ if is_name(token) => path.push(token),
                _ => {
                    at -= 1;
                    if name == Some("_") {
                        self.paths.push((path, line));
                    } else if let Some(name) = name.or(path.last().copied()) {
                        let import = Import {
                            path,
                            line,
                            is_public,
                        };
                        self.imports.insert(name, import);
                    }
                    break;
                }
            }
        }
        at
    }
}

/// The names and signs of the code that is not for tests, each with its line.
fn tokens(source: &Source) -> Vec<(&str, usize)> {
    let mut tokens = Vec::new();
    for (index, line) in source.code.lines().enumerate() {
        if source.is_test(index + 1) {
            continue;
        }
        let mut at = 0;
        while at < line.len() {
            let end = match lexer::end_of_word(line.as_bytes(), at) {
                _ if line[at..].starts_with("::") => at + 2,
                end => end.max(at + 1),
            };
            let token = &line[at..end];
            if !token.trim().is_empty() {
                tokens.push((token, index + 1));
            }
            at = end;
        }
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.bytes().next().is_some_and(lexer::is_word)
}

/// The end of the path whose first segment stands at `start`.
fn end_of_path(tokens: &[(&str, usize)], start: usize) -> usize {
    let mut at = start + 1;
    while tokens.get(at).is_some_and(|(token, _)| *token == "::")
        && tokens.get(at + 1).is_some_and(|(token, _)| is_name(token))
    {
        at += 2;
    }
    at
}

/// The modules whose items a module uses.
fn edges(modules: &Crate<'_>, module: &Module<'_>) -> Edges {
    let named: BTreeSet<&str> = module.paths.iter().map(|(path, _)| path[0]).collect();
    let mut used: Vec<(Target, usize)> = Vec::new();
    for (name, import) in &module.imports {
        // An item that is only exported again is used elsewhere.
        if !import.is_public || named.contains(name) {
            let target = resolve(modules, &module.name, &import.path, &mut Vec::new());
            used.extend(target.map(|target| (target, import.line)));
        }
    }
    for (path, line) in module.paths.iter().filter(|(path, _)| path.len() > 1) {
        let target = resolve(modules, &module.name, path, &mut Vec::new());
        used.extend(target.map(|target| (target, *line)));
    }
    let mut edges = Edges::new();
    for (target, line) in used {
        match target {
            Target::Item(name) if name != module.name => edges.entry(name).or_insert(line),
            Target::Item(_) | Target::Module(_) => continue,
        };
    }
    edges
}

/// Returns the target of a path in the module `from`; `None` for what is not of this crate.
/// `seen` are the imports that led here, so that a circle of them ends.
fn resolve(
    modules: &Crate<'_>,
    from: &str,
    path: &[&str],
    seen: &mut Vec<(String, String)>,
) -> Option<Target> {
    let mut rest = path;
    let mut at = from.to_owned();
    match rest.first() {
        Some(&"crate") => {
            at = "crate".to_owned();
            rest = &rest[1..];
        }
        Some(&"self") => rest = &rest[1..],
        Some(&"super") => {
            while rest.first() == Some(&"super") {
                at = parent(&at)?;
                rest = &rest[1..];
            }
        }
        Some(first) => {
            let is_child = modules.contains_key(&child(&at, first));
            if !is_child && !modules[&at].imports.contains_key(first) {
                return None;
            }
        }
        None => {}
    }
    for (index, segment) in rest.iter().enumerate() {
        let below = child(&at, segment);
        if modules.contains_key(&below) {
            at = below;
            continue;
        }
        let here = modules.get(&at)?;
        let step = (at.clone(), (*segment).to_owned());
        if seen.contains(&step) {
            return None;
        }
        seen.push(step);
        if let Some(import) = here.imports.get(segment) {
            return match resolve(modules, &at, &import.path, seen)? {
                Target::Module(name) => {
                    let rest: Vec<&str> =
                        ["self"].iter().chain(&rest[index + 1..]).copied().collect();
                    resolve(modules, &name, &rest, seen)
                }
                item @ Target::Item(_) => Some(item),
            };
        }
        return Some(Target::Item(at));
    }
    Some(Target::Module(at))
}

fn child(module: &str, name: &str) -> String {
    match module {
        "crate" => name.to_owned(),
        _ => format!("{module}::{name}"),
    }
}

fn parent(module: &str) -> Option<String> {
    match module.rsplit_once("::") {
        Some((parent, _)) => Some(parent.to_owned()),
        None => (module != "crate").then(|| "crate".to_owned()),
    }
}

/// The largest groups of more than one module that all depend on each other.
fn circles<'a>(edges: &BTreeMap<&'a str, Edges>) -> Vec<Vec<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|start| (*start, reachable(edges, start)))
        .collect();
    let mut found = BTreeSet::new();
    for (start, from_start) in &reached {
        let circle: Vec<&str> = edges
            .keys()
            .filter(|other| from_start.contains(*other) && reached[*other].contains(start))
            .copied()
            .collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

fn reachable<'a>(edges: &'a BTreeMap<&str, Edges>, start: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(next) = open.pop() {
        for name in edges.get(next).into_iter().flatten().map(|(name, _)| name) {
            if reached.insert(name.as_str()) {
                open.push(name);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "mod b;\nmod c;\npub use b::B;\npub use c::C;";

    #[test]
    fn modules_are_named_by_their_files() {
        let check = |path: &str, expected: Option<&str>| {
            let found = module_name(&Source::new(path, ""));
            assert_eq!(found.as_deref(), expected, "{path}");
        };
        check("crates/a/src/lib.rs", Some("crate"));
        check("xtask/src/main.rs", Some("crate"));
        check("crates/a/src/b.rs", Some("b"));
        check("crates/a/src/b/mod.rs", Some("b"));
        check("crates/a/src/b/c.rs", Some("b::c"));
        check("crates/a/tests/b.rs", None);
    }

    #[test]
    fn modules_beside_each_other_are_compared() {
        let check = |b: &str, c: &str, circle: bool| {
            let root = Source::new("crates/a/src/lib.rs", ROOT);
            let b = Source::new("crates/a/src/b.rs", b);
            let c = Source::new("crates/a/src/c.rs", c);
            let findings = check_except(&[root, b, c], &[]);
            assert_eq!(findings.len(), usize::from(circle), "{findings:?}");
            for finding in findings {
                let imports = "(crates/a/src/b.rs:1 imports `c`, crates/a/src/c.rs:1 imports `b`)";
                assert!(finding.message.contains(imports), "{finding}");
            }
        };
        check("use crate::c::C;", "struct C;", false);
        check("use crate::c::C;", "use super::b::B;", true);
        check(
            "use crate::c::{D, C as _};",
            "use crate::{d::D, b::{B}};",
            true,
        );
        // What the root exports again is of the module that defines it.
        check("use crate::C;", "use crate::{B, x::Y};", true);
        check("fn f() { crate::C::new() }", "type D = crate::B;", true);
        // A module that is imported is used where its items are.
        check(
            "use crate::c::{self as d}; type D = d::C;",
            "use crate::b::*;",
            true,
        );
        check("use crate::c;", "use crate::b::B;", false);
        // Neither tests nor visibility are dependences.
        check("#[cfg(test)]\nuse crate::c::C;", "use crate::b::B;", false);
        check(
            "pub(in crate::c) fn f() { x.c::<u8>() }",
            "use crate::b::B;",
            false,
        );
        // Names that lead round in a circle, or out of the crate, lead nowhere.
        check("use crate::c::X; use std::c;", "use crate::b::X;", false);
    }

    #[test]
    fn a_folder_is_compared_with_its_files() {
        let check = |parent: &str, child: &str, expected: usize| {
            let parent = Source::new("crates/a/src/b/mod.rs", parent);
            let child = Source::new("crates/a/src/b/c.rs", child);
            let findings = check_except(&[parent, child], &[]);
            assert_eq!(findings.len(), expected, "{findings:?}");
        };
        check("mod c; pub use c::C;", "use super::B;", 0);
        check("mod c; pub use c::c;", "use super::B;", 0);
        check("mod c; pub use c::C; fn f() -> C { }", "use super::B;", 1);
        check("mod c; use self::c::C;", "use super::B;", 1);
        check("mod c; fn f() { c::g() }", "fn g(x: super::B) {}", 1);
        check("mod c; fn f() { c::g() }", "use super::super::b::B;", 1);
        check("mod c; fn f() { self.c() }", "use super::B;", 0);
        check("mod c; fn f() { c::g() }", "fn g() {}", 0);
    }

    #[test]
    fn exceptions_only_shrink() {
        let check = |modules: usize, expected: &[&str]| {
            let b = Source::new("crates/a/src/b.rs", "use crate::c::C;");
            let c = Source::new("crates/a/src/c.rs", "use crate::b::B;");
            let findings = check_except(&[b, c], &[("a", modules)]);
            assert_eq!(findings.len(), expected.len(), "{findings:?}");
            for (finding, part) in findings.iter().zip(expected) {
                assert!(finding.to_string().contains(part), "{finding}");
            }
        };
        check(1, &["2 modules import each other"]);
        check(2, &[]);
        check(3, &["circles.rs: 2 modules of a are in circles"]);
    }
}
