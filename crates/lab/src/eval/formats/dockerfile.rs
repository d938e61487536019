//! The part of a container's description that a folder can have: its working folder, the files that
//! are copied there, and commands that install nothing.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use gyrus_text::fits;

/// The working folder of a container that names none.
const WORKDIR: &str = "/app";

/// Words of commands that fetch or install something. There is no network where a task is prepared,
/// and nothing outside of its folder can be changed.
const INSTALLING: [&str; 15] = [
    "add-apt-repository",
    "apk",
    "apt",
    "apt-get",
    "cargo",
    "conda",
    "curl",
    "dpkg",
    "gem",
    "npm",
    "pip",
    "pip3",
    "uv",
    "wget",
    "yum",
];

/// Files of a task that its container has only for its author.
const AUTHORS: [&str; 9] = [
    "Dockerfile",
    "docker-compose.yaml",
    "docker-compose.yml",
    "run-tests.sh",
    "solution.sh",
    "solution.yaml",
    "task.yaml",
    "tests",
    "solution",
];

#[derive(Debug, PartialEq)]
pub(super) struct ContainerFolder {
    /// Its working folder, for which the attempt's folder stands.
    pub(super) workdir: String,
    /// Files and folders, each with its path in the working folder.
    pub(super) copies: Vec<(PathBuf, PathBuf)>,
    /// Commands that complete the folder, a line each.
    pub(super) commands: Vec<String>,
}

impl Default for ContainerFolder {
    fn default() -> Self {
        Self {
            workdir: WORKDIR.to_owned(),
            copies: Vec::new(),
            commands: Vec::new(),
        }
    }
}

/// Reads the description of a container whose files lie in `folder`.
///
/// # Errors
/// Returns what a folder cannot have, in words.
pub(super) fn read(text: &str, folder: &Path) -> Result<ContainerFolder, String> {
    let lines = instructions(text);
    let mut container = ContainerFolder::default();
    let last = |name: &str| {
        let named = lines.iter().rev().find(|(word, _)| word == name);
        named.map(|(_, rest)| rest.trim_end_matches('/').to_owned())
    };
    if let Some(workdir) = last("WORKDIR") {
        container.workdir = match workdir.strip_prefix('/') {
            Some(_) => workdir,
            None => format!("{WORKDIR}/{workdir}"),
        };
    }
    for (word, rest) in &lines {
        match word.as_str() {
            "COPY" | "ADD" => container.copy(rest, folder)?,
            "RUN" => {
                let installs = |word: &str| INSTALLING.contains(&word);
                let is_word = |c: char| c.is_whitespace() || "&|;()".contains(c);
                if rest.contains("<<") {
                    return Err(format!("its container runs a script: {rest}"));
                }
                if !rest.split(is_word).any(installs) {
                    container.commands.push(rest.clone());
                }
            }
            _ => {}
        }
    }
    Ok(container)
}

/// Returns the instructions: their word in capitals and what follows, on one line.
fn instructions(text: &str) -> Vec<(String, String)> {
    let is_comment = |line: &&str| !line.trim_start().starts_with('#');
    let lines: Vec<_> = text.lines().filter(is_comment).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let split = |line: &str| {
        let (word, rest) = line.trim().split_once(char::is_whitespace)?;
        Some((word.to_ascii_uppercase(), rest.trim().to_owned()))
    };
    joined.lines().filter_map(split).collect()
}

impl ContainerFolder {
    fn copy(&mut self, rest: &str, folder: &Path) -> Result<(), String> {
        let refused = |why: &str| Err(format!("its container has `COPY {rest}`: {why}"));
        let takes_from_another = |word: &str| word.starts_with("--from");
        if rest.split_whitespace().any(takes_from_another) {
            return refused("it takes files from another stage");
        }
        let words = words(rest);
        let Some((to, sources)) = words
            .split_last()
            .filter(|(_, sources)| !sources.is_empty())
        else {
            return refused("it names no file");
        };
        let relative = match to.strip_prefix('/') {
            None => to.as_str(),
            Some(_) => {
                let below = to.strip_prefix(self.workdir.as_str());
                match below.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                    Some(below) => below.trim_start_matches('/'),
                    None => return refused("that is outside of its working folder"),
                }
            }
        };
        let into = Path::new(relative);
        let is_plain = |path: &Path| {
            (path.components()).all(|it| matches!(it, Component::Normal(_) | Component::CurDir))
        };
        let found = sources.iter().flat_map(|source| found(folder, source));
        let found: Vec<PathBuf> = found.collect();
        if found.is_empty()
            || !is_plain(into)
            || !sources
                .iter()
                .all(|it| is_plain(Path::new(it.trim_start_matches('/'))))
        {
            return refused("there is no such file in its folder");
        }
        let is_folder = to.ends_with('/') || matches!(relative, "" | ".") || found.len() > 1;
        for path in found {
            let name = path.file_name().unwrap_or_default().to_owned();
            if path.is_dir() {
                let is_whole = path == *folder;
                let entries = fs::read_dir(&path).map_err(|error| error.to_string())?;
                for entry in entries {
                    let entry = entry.map_err(|error| error.to_string())?;
                    let name = entry.file_name();
                    let is_authors = AUTHORS.iter().any(|own| name == *own);
                    if !(is_whole && is_authors) {
                        self.copies.push((entry.path(), into.join(name)));
                    }
                }
            } else {
                let to = if is_folder {
                    into.join(name)
                } else {
                    into.to_owned()
                };
                self.copies.push((path, to));
            }
        }
        Ok(())
    }
}

/// Returns the words of an instruction without its options, in both of its forms.
fn words(rest: &str) -> Vec<String> {
    let plain = || {
        let words = rest.split_whitespace();
        let words = words.skip_while(|word| word.starts_with("--"));
        words.map(str::to_owned).collect()
    };
    serde_json::from_str(rest).unwrap_or_else(|_| plain())
}

/// Returns the files and folders that a source means; `*` stands for anything within a name.
fn found(folder: &Path, source: &str) -> Vec<PathBuf> {
    let path = folder.join(source.trim_start_matches('/'));
    let normal: PathBuf = path.components().collect();
    if !source.contains('*') {
        return normal.exists().then_some(normal).into_iter().collect();
    }
    let (parent, pattern) = (normal.parent(), normal.file_name());
    let pattern = pattern.unwrap_or_default().to_string_lossy();
    let entries = parent.and_then(|parent| fs::read_dir(parent).ok());
    let entries = entries.into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<_> = entries
        .filter(|entry| fits(&pattern, &entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_what_it_can_have_of_a_container() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a.csv", "b.csv", "task.yaml", "x.sh"] {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at("data")).unwrap();
        fs::write(at("data/d.txt"), "").unwrap();
        let read = |text: &str| {
            let container = read(text, folder.path())?;
            let copies = container.copies.iter().map(|(from, to)| {
                let from = from.strip_prefix(folder.path()).unwrap_or(from);
                format!("{} {}", from.display(), to.display())
            });
            let copies: Vec<_> = copies.collect();
            Ok::<_, String>((container.workdir, copies, container.commands))
        };
        let (workdir, copies, commands) = read(
            "FROM x\n# a remark\nWORKDIR /work/\nRUN apt-get update && \\\n  apt-get install -y git\n\
             COPY --chown=1:1 *.csv data/\nCOPY data /work/in\ncopy [\"x.sh\", \"/work/y.sh\"]\n\
             RUN mkdir -p out \\\n && touch out/a\nENV A=1\nCMD sh\n",
        )
        .unwrap();
        assert_eq!(workdir, "/work");
        assert_eq!(
            copies,
            [
                "a.csv data/a.csv",
                "b.csv data/b.csv",
                "data/d.txt in/d.txt",
                "x.sh y.sh"
            ]
        );
        assert_eq!(commands, ["mkdir -p out   && touch out/a"]);
        let (workdir, mut copies, _) = read("COPY . .").unwrap();
        copies.sort();
        assert_eq!(workdir, "/app");
        assert_eq!(
            copies,
            [
                "a.csv ./a.csv",
                "b.csv ./b.csv",
                "data ./data",
                "x.sh ./x.sh"
            ]
        );
        for (text, expected) in [
            ("COPY x.sh /etc/x", "outside of its working folder"),
            ("COPY x.sh /application", "outside of its working folder"),
            ("COPY x.sh ../x", "no such file"),
            ("COPY ../x.sh .", "no such file"),
            ("COPY nothing .", "no such file"),
            ("COPY x.sh", "names no file"),
            ("COPY --from=0 /a /app/a", "another stage"),
            ("RUN cat <<E\na\nE", "runs a script"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
