//! Meanings of what is begun at the prompt: words with a slash, and files with an `@`.

use std::{
    cell::RefCell,
    cmp::Reverse,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gyrus_surfaces::console::{LineCandidate, LineCandidates};
use ignore::WalkBuilder;

use super::words;

/// Maximum number of files that a completion looks at, and the longest time for it: a completion
/// must be shown at once.
const MOST_FILES: usize = 20_000;
const LONGEST_LOOK: Duration = Duration::from_millis(150);

/// Time for which the files are known.
const KNOWN_FOR: Duration = Duration::from_secs(5);

/// Maximum number of candidates for a word.
const MOST_WORDS: usize = 50;

/// Knows the words and the files of a folder.
pub(super) struct Completion {
    folder: PathBuf,
    /// Words with a slash: what each takes and does.
    words: Vec<(String, String, String)>,
    files: RefCell<Option<(Instant, Vec<String>)>>,
}

impl Completion {
    /// Creates the completion of a folder's files, and of the goals that names stand for.
    pub(super) fn new(folder: &Path, goals: Vec<(String, String)>) -> Self {
        let goals = goals
            .into_iter()
            .map(|(name, does)| (format!("/{name}"), "[…]".to_owned(), does));
        Self {
            folder: folder.to_owned(),
            words: words::all().into_iter().chain(goals).collect(),
            files: RefCell::new(None),
        }
    }

    pub(super) fn candidates(&self, typed: &str) -> LineCandidates {
        let word = typed.rfind(char::is_whitespace).map_or(0, |space| {
            space + typed[space..].chars().next().map_or(1, char::len_utf8)
        });
        let is_whole = |takes: &str| takes.is_empty() || takes.starts_with('[');
        if typed.starts_with('/') && word == 0 {
            let words = self
                .words
                .iter()
                .filter(|(word, ..)| word.starts_with(typed));
            let candidate = |(word, takes, does): &(String, String, String)| LineCandidate {
                word: if is_whole(takes) {
                    word.clone()
                } else {
                    format!("{word} ")
                },
                about: format!("{takes:<8} {does}"),
                is_whole: is_whole(takes),
            };
            return LineCandidates {
                from: 0,
                words: words.map(candidate).collect(),
            };
        }
        let takes_path = ["/file ", "/image "]
            .iter()
            .any(|word| typed.starts_with(word));
        let from = match typed[word..].strip_prefix('@') {
            Some(_) => word + 1,
            None if takes_path => word,
            None => return LineCandidates::default(),
        };
        let found = self.paths(&typed[from..]);
        let candidate = |path: String| LineCandidate {
            // A backslash before a space belongs to the path.
            word: path.replace(' ', "\\ "),
            about: String::new(),
            is_whole: false,
        };
        LineCandidates {
            from,
            words: found.into_iter().map(candidate).collect(),
        }
    }

    /// Returns the possible paths, the best first: those of the folder by any of their characters
    /// in order, all others as they begin.
    fn paths(&self, typed: &str) -> Vec<String> {
        if typed.starts_with(['/', '~']) || typed.starts_with("..") {
            return self.beginning_with(typed);
        }
        let mut known = self.files.borrow_mut();
        if known
            .as_ref()
            .is_none_or(|(since, _)| since.elapsed() > KNOWN_FOR)
        {
            *known = Some((Instant::now(), files(&self.folder)));
        }
        let files = known.iter().flat_map(|(_, files)| files);
        let mut found: Vec<(Reverse<u32>, usize, &String)> = files
            .filter_map(|file| Some((Reverse(fit(typed, file)?), file.len(), file)))
            .collect();
        found.sort_unstable();
        let found = found.into_iter().take(MOST_WORDS);
        found.map(|(.., file)| file.clone()).collect()
    }

    fn beginning_with(&self, typed: &str) -> Vec<String> {
        let (above, begun) = typed.rsplit_once('/').unwrap_or(("", typed));
        let folder = self.folder.join(words::path(&format!("{above}/")));
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<String> = names
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let end = if entry.path().is_dir() { "/" } else { "" };
                name.starts_with(begun)
                    .then(|| format!("{above}/{name}{end}"))
            })
            .take(MOST_WORDS)
            .collect();
        paths.sort_unstable();
        paths
    }
}

/// Returns the files of a folder, relative to it, without hidden ones and those that git ignores.
fn files(folder: &Path) -> Vec<String> {
    let since = Instant::now();
    WalkBuilder::new(folder)
        .build()
        .take(MOST_FILES)
        .take_while(|_| since.elapsed() < LONGEST_LOOK)
        .filter_map(|entry| {
            let entry = entry.ok().filter(|entry| entry.depth() > 0)?;
            let path = entry.path().strip_prefix(folder).ok()?.to_str()?;
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            Some(format!("{path}{}", if is_folder { "/" } else { "" }))
        })
        .collect()
}

/// Returns a score that is larger the better a path fits the typed characters, which must occur in
/// order; `None` if they do not. Adjacent characters, and those in the file's own name, score best.
fn fit(typed: &str, path: &str) -> Option<u32> {
    let (typed, path) = (typed.to_lowercase(), path.to_lowercase());
    let name = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(&path);
    if name.starts_with(&typed) {
        return Some(4);
    }
    if name.contains(&typed) {
        return Some(3);
    }
    if path.contains(&typed) {
        return Some(2);
    }
    let mut signs = path.chars();
    typed
        .chars()
        .all(|c| signs.any(|sign| sign == c))
        .then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src/prompt")).unwrap();
        for file in [
            "src/prompt/mod.rs",
            "src/main.rs",
            "my notes.txt",
            "premature.md",
        ] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let completion = Completion::new(folder.path(), Vec::new());
        let words = |typed: &str| {
            let found = completion.candidates(typed);
            let words: Vec<String> = found.words.into_iter().map(|it| it.word).collect();
            (found.from, words)
        };
        assert_eq!(
            words("read @ma"),
            (6, vec!["src/main.rs".into(), "premature.md".into()])
        );
        assert_eq!(words("see @spmod").1, ["src/prompt/mod.rs"]);
        assert_eq!(words("@notes").1, ["my\\ notes.txt"]);
        assert_eq!(words("/file pre"), (6, vec!["premature.md".into()]));
        assert_eq!(words("x@ma").1, Vec::<String>::new());
        assert_eq!(words("/qu").1, ["/quit"]);
        assert!(words("/").1.contains(&"/skills".to_owned()));
        assert!(words("/mo").1.contains(&"/mode ".to_owned()));
        let above = words(&format!("@{}/my", folder.path().display()));
        assert!(above.1[0].ends_with("/my\\ notes.txt"), "{above:?}");
        assert_eq!(words("ä\u{a0}@main").1, ["src/main.rs"]);
    }
}
