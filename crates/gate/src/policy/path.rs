//! Patterns of paths: `*` and `?` within a name, `**` for any number of folders.
//!
//! A path is compared name by name, so no pattern reaches through `..`. Deny and ask rules read
//! their patterns widely: letters of either case, at any depth if there is no slash, and with all
//! that lies below. Allow rules read theirs as they stand; `.git` must stand in them by name,
//! because git runs programs that files in there name.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use super::subject::{PathUse, PatternReading, SubjectPath};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    base: PatternBase,
    parts: Vec<PatternPart>,
    reach: PatternReading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternBase {
    Workspace,
    Root,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPart {
    /// Any number of names.
    Names,
    /// One name that matches this pattern.
    Name(String),
}

/// A path of a call, taken apart once for all rules.
#[derive(Debug)]
pub(super) struct PathNames {
    real: Vec<String>,
    local: Option<Vec<String>>,
    folded_real: Vec<String>,
    folded_local: Option<Vec<String>>,
    used: PathUse,
    /// Absolute and without `..`. Anything else could be anywhere.
    plain: bool,
}

impl PathNames {
    pub(super) fn of(path: &SubjectPath) -> Self {
        let (real, climbs) = names(&path.real);
        let local = path.in_workspace.as_deref().map(names);
        let folded =
            |names: &[String]| -> Vec<String> { names.iter().map(|n| n.to_lowercase()).collect() };
        Self {
            plain: path.real.is_absolute()
                && !climbs
                && !local.as_ref().is_some_and(|(_, climbs)| *climbs),
            folded_real: folded(&real),
            folded_local: local.as_ref().map(|(names, _)| folded(names)),
            real,
            local: local.map(|(names, _)| names),
            used: path.used,
        }
    }
}

/// The names in a path, and whether it climbs.
fn names(path: &Path) -> (Vec<String>, bool) {
    let mut climbs = false;
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        Component::ParentDir => {
            climbs = true;
            None
        }
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    (names.collect(), climbs)
}

impl PathPattern {
    /// Pattern of an allow rule that names no paths: the workspace.
    pub(super) fn workspace() -> Self {
        Self {
            base: PatternBase::Workspace,
            parts: vec![PatternPart::Names],
            reach: PatternReading::Narrow,
        }
    }

    /// Parses a pattern of paths; the error is a phrase.
    pub(super) fn new(
        text: &str,
        home: Option<&Path>,
        reach: PatternReading,
    ) -> Result<Self, String> {
        if text.contains(gyrus_text::is_unseen) {
            return Err("has a character that is not seen".into());
        }
        if let Some(c) = text.chars().find(|c| "[]{}\\".contains(*c)) {
            return Err(format!(
                "has `{c}`, which is not a pattern here; there are `*`, `?` and `**`, and a list for \
                 several (`?` stands for a `{c}` in a name)"
            ));
        }
        let (base, mut parts, rest) = match (text.strip_prefix('/'), text.strip_prefix('~')) {
            (Some(rest), _) => (PatternBase::Root, Vec::new(), rest),
            (None, Some(rest)) if rest.is_empty() || rest.starts_with('/') => {
                let home = home.ok_or("starts at the home folder, which is not known here")?;
                let (home, _) = names(home);
                (
                    PatternBase::Root,
                    home.into_iter().map(PatternPart::Name).collect(),
                    rest,
                )
            }
            (None, Some(_)) => return Err("names the home of somebody; write it out".into()),
            (None, None) => (PatternBase::Workspace, Vec::new(), text),
        };
        for name in rest.split('/') {
            match name {
                "" | "." => {}
                ".." => return Err("climbs with `..`; write the absolute path".into()),
                "**" if parts.last() == Some(&PatternPart::Names) => {}
                "**" => parts.push(PatternPart::Names),
                name if name.contains("**") => {
                    return Err(
                        "has `**` within a name; it stands alone, as in `src/**/*.rs`".into(),
                    );
                }
                name => parts.push(PatternPart::Name(name.to_owned())),
            }
        }
        if parts.is_empty() && base == PatternBase::Workspace {
            return Err("names the workspace itself; `**` is all that is in it".into());
        }
        if reach == PatternReading::Wide {
            widen(
                &mut parts,
                base == PatternBase::Workspace && !text.contains('/'),
            );
        }
        Ok(Self { base, parts, reach })
    }

    /// Returns the folder that contains everything that the pattern matches.
    pub(super) fn start(&self, workspace: &Path) -> PathBuf {
        match self.base {
            PatternBase::Workspace => workspace.to_owned(),
            PatternBase::Root => PathBuf::from("/"),
        }
    }

    /// Whether a path that matched up to this part matches as a whole, with all below.
    pub(super) fn ends_at(&self, part: usize) -> bool {
        self.parts[part..]
            .iter()
            .all(|rest| *rest == PatternPart::Names)
    }

    /// Whether this part of the pattern matches any number of folders.
    pub(super) fn is_any_depth_at(&self, part: usize) -> bool {
        self.parts.get(part) == Some(&PatternPart::Names)
    }

    /// Whether this part of the pattern matches a name, ignoring case.
    pub(super) fn name_matches_at(&self, part: usize, name: &OsStr) -> bool {
        let name = name.to_string_lossy().to_lowercase();
        matches!(self.parts.get(part), Some(PatternPart::Name(pattern)) if name_matches(pattern, &name))
    }

    pub(super) fn matches(&self, path: &PathNames) -> bool {
        match self.reach {
            PatternReading::Wide => self.may_match(path),
            PatternReading::Narrow => path.plain && self.surely_matches(path),
        }
    }

    fn surely_matches(&self, path: &PathNames) -> bool {
        let names = match self.base {
            PatternBase::Root => &path.real,
            PatternBase::Workspace => match &path.local {
                Some(names) => names,
                None => return false,
            },
        };
        let allowed = |part: &str, name: &str| {
            part == name || (!name.eq_ignore_ascii_case(".git") && name_matches(part, name))
        };
        let under = |parts: &[PatternPart]| parts_match(parts, names, &allowed);
        // `src/**` allows changes below `src`, not taking `src` away.
        let itself = match (path.used, self.parts.split_last()) {
            (PathUse::Changes, Some((PatternPart::Names, folder))) => under(folder),
            _ => false,
        };
        under(&self.parts) && !itself
    }

    fn may_match(&self, path: &PathNames) -> bool {
        if !path.plain {
            return true;
        }
        let names = match self.base {
            PatternBase::Root => &path.folded_real,
            PatternBase::Workspace => match &path.folded_local {
                Some(names) => names,
                None => return false,
            },
        };
        if parts_match(&self.parts, names, &name_matches) {
            return true;
        }
        // Who changes or removes a folder changes what the pattern names in it.
        let holds_it = || {
            names.len() < self.parts.len()
                && self.parts.iter().zip(names).all(|(part, name)| match part {
                    PatternPart::Names => false,
                    PatternPart::Name(part) => name_matches(part, name),
                })
        };
        path.used == PathUse::Changes && holds_it()
    }
}

/// Makes a pattern match in either letter case, with all paths below, and at any depth if
/// requested.
fn widen(parts: &mut Vec<PatternPart>, any_depth: bool) {
    for part in parts.iter_mut() {
        if let PatternPart::Name(name) = part {
            *name = name.to_lowercase();
        }
    }
    if any_depth && parts.first() != Some(&PatternPart::Names) {
        parts.insert(0, PatternPart::Names);
    }
    if parts.last() != Some(&PatternPart::Names) {
        parts.push(PatternPart::Names);
    }
}

/// Matches name by name. Only the last `**` is ever tried again, which finds every match because
/// all else stands for exactly one name.
fn parts_match(
    parts: &[PatternPart],
    names: &[String],
    same: &impl Fn(&str, &str) -> bool,
) -> bool {
    let (mut part, mut name) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while name < names.len() {
        match parts.get(part) {
            Some(PatternPart::Names) => {
                again = Some((part + 1, name));
                part += 1;
            }
            Some(PatternPart::Name(pattern)) if same(pattern, &names[name]) => {
                part += 1;
                name += 1;
            }
            Some(PatternPart::Name(_)) | None => match again {
                // `*` here asks whether a star may stand for this name at all.
                Some((after, at)) if same("*", &names[at]) => {
                    again = Some((after, at + 1));
                    part = after;
                    name = at + 1;
                }
                _ => return false,
            },
        }
    }
    parts[part..].iter().all(|rest| *rest == PatternPart::Names)
}

/// Whether a name matches a pattern with `*` and `?`.
pub(crate) fn name_matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == name;
    }
    let (mut wanted, mut left) = (pattern.chars(), name.chars());
    // Behind the last star, and what it does not stand for yet.
    let mut again = None;
    loop {
        let before = left.clone();
        match (wanted.next(), left.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                left = before;
                again = Some((wanted.clone(), left.clone()));
            }
            (Some('?'), Some(_)) => {}
            (Some(one), Some(other)) if one == other => {}
            (Some(_) | None, _) => {
                let Some((after, mut from)) = again.take() else {
                    return false;
                };
                if from.next().is_none() {
                    return false;
                }
                wanted = after.clone();
                left = from.clone();
                again = Some((after, from));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(path: &str, used: PathUse) -> PathNames {
        let real = Path::new("/srv/project").join(path);
        PathNames::of(&SubjectPath::new(real, used, Path::new("/srv/project")))
    }

    fn check(pattern: &str, path: &str, narrow: bool, wide: bool) {
        check_use(pattern, path, PathUse::Reads, narrow, wide);
    }

    fn check_use(pattern: &str, path: &str, used: PathUse, narrow: bool, wide: bool) {
        let home = Some(Path::new("/srv/people/kim"));
        let path = names_of(path, used);
        for (reach, expected) in [
            (PatternReading::Narrow, narrow),
            (PatternReading::Wide, wide),
        ] {
            let matched = PathPattern::new(pattern, home, reach)
                .unwrap()
                .matches(&path);
            assert_eq!(matched, expected, "{pattern} {reach:?} on {path:?}");
        }
    }

    #[test]
    fn deny_reads_a_pattern_widely_and_allow_as_it_stands() {
        check("src/**", "src/a/b.rs", true, true);
        check("src/**", "src", true, true);
        check("src/**", "srcs/a", false, false);
        check("src/*.rs", "src/a/b.rs", false, false);
        check("src/**/*.rs", "src/b.rs", true, true);
        check("src/**/t?st/**/*.rs", "src/a/test/test/x/y.rs", true, true);
        check("*.pem", "keys/deep/a.pem", false, true);
        check(".env", "app/.ENV", false, true);
        check("secrets", "secrets/a/b", false, true);
        check("./Secrets/", "secrets/a", false, true);
        check("**", "", true, true);
        check("/etc/**", "/etc/hosts", true, true);
        check("/**", "src/a", true, true);
        check("**", "/etc/hosts", false, false);
        check("~/.ssh/**", "/srv/people/kim/.ssh/id", true, true);
        check("a*b*c", "axbxbxc", true, true);
        check("a*b*c", "axcxb", false, false);
        check("ä?", "Äß", false, true);
    }

    #[test]
    fn git_must_be_named_to_be_allowed() {
        check("**", ".git/config", false, true);
        check("**/config", "sub/.GIT/config", false, true);
        check("*/config", ".git/config", false, true);
        check(".git/**", ".git/hooks/x", true, true);
    }

    #[test]
    fn changing_a_folder_changes_what_is_in_it() {
        let changes = PathUse::Changes;
        check_use("src/**", "src", changes, false, true);
        check_use("src/**", "src/a", changes, true, true);
        check_use("**", "", changes, false, true);
        check_use("secrets/keys/*.pem", "secrets", changes, false, true);
        check("secrets/keys/*.pem", "secrets", false, false);
        check_use("secrets/keys/*.pem", "other", changes, false, false);
        check_use(".env", "", changes, false, true);
        check_use(".env", "src", changes, false, false);
    }

    #[test]
    fn a_path_that_climbs_could_be_anywhere() {
        check("src/**", "src/../../x", false, true);
        check("/nowhere", "src/../../x", false, true);
    }

    /// Every sequence of up to four of these.
    fn sequences(of: &[&'static str]) -> Vec<Vec<&'static str>> {
        let mut all = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..4 {
            let longer: Vec<Vec<_>> = all[from..]
                .iter()
                .flat_map(|short: &Vec<_>| of.iter().map(|one| [&short[..], &[*one]].concat()))
                .collect();
            from = all.len();
            all.extend(longer);
        }
        all
    }

    /// Computes the meaning of patterns in its shortest form, which is exponential.
    fn means(pattern: &[&str], many: &str, one: &str, given: &[&str]) -> bool {
        match (pattern.split_first(), given.split_first()) {
            (None, None) => true,
            (Some((first, rest)), _) if *first == many && means(rest, many, one, given) => true,
            (Some((first, _)), Some((_, left))) if *first == many => {
                means(pattern, many, one, left)
            }
            (Some((first, rest)), Some((name, left))) => {
                (first == name || *first == one) && means(rest, many, one, left)
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    #[test]
    fn matching_finds_every_match_and_no_other() {
        for given in sequences(&["a", "b"]) {
            let names: Vec<_> = given.iter().map(|name| (*name).to_owned()).collect();
            for pattern in sequences(&["a", "b", "*", "?"]) {
                let matched = name_matches(&pattern.concat(), &given.concat());
                let expected = means(&pattern, "*", "?", &given);
                assert_eq!(matched, expected, "{pattern:?} {given:?}");
            }
            for pattern in sequences(&["a", "b", "**", "*"]) {
                let parts: Vec<_> = pattern
                    .iter()
                    .map(|part| match *part {
                        "**" => PatternPart::Names,
                        name => PatternPart::Name(name.to_owned()),
                    })
                    .collect();
                let matched = parts_match(&parts, &names, &name_matches);
                let expected = means(&pattern, "**", "*", &given);
                assert_eq!(matched, expected, "{pattern:?} {given:?}");
            }
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "../x",
            "a/../b",
            "src/**.rs",
            "a[bc]",
            "{a,b}",
            "~kim/x",
            ".",
            "",
            "a\u{0}",
        ] {
            assert!(
                PathPattern::new(text, None, PatternReading::Wide).is_err(),
                "{text}"
            );
        }
        assert!(PathPattern::new("~/x", None, PatternReading::Wide).is_err());
    }
}
