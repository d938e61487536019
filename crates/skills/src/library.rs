//! The skills of a person, a project, installed packages and gyrus itself. Of several with one name
//! the first place counts, and the others are told.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use gyrus_text::FileMistake;

use crate::{
    file_form,
    files::SKILL_FILE as FILE,
    folder_form,
    skill::{Care, Skill, SkillPlace},
};

/// Maximum size of a skill's text in bytes.
const MAX_FILE: u64 = 256 << 10;

/// Maximum number of skills in one folder.
const MAX_SKILLS: usize = 2_000;

/// Maximum number of entries of a folder that are examined.
const MAX_ENTRIES: usize = 100_000;

/// The places that are searched for skills.
#[derive(Debug, Default)]
pub struct SkillFolders {
    /// Folders of the person.
    pub user: Vec<PathBuf>,
    /// Folders of skills in a project that the person trusts.
    pub project: Vec<PathBuf>,
    /// The folder of installed packages, each with a folder `skills`.
    pub installed: Option<PathBuf>,
    /// The skills of gyrus: name and text of each.
    pub built_in: &'static [(&'static str, &'static str)],
}

/// A file that is not a valid skill, with the reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    pub path: PathBuf,
    /// All mistakes.
    pub mistakes: Vec<FileMistake>,
}

/// A skill that is not used, because another one of its name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowedSkill {
    pub skill: Skill,
    /// The file of the skill that is used.
    pub by: PathBuf,
}

/// The skills that were found.
#[derive(Debug, Default)]
pub struct Library {
    /// The skills in use, sorted by name.
    pub skills: Vec<Skill>,
    /// Skills about which the person never decided. They do not hide other skills of their name.
    pub unknown: Vec<Skill>,
    /// Skills that are hidden by another one of their name.
    pub shadowed: Vec<ShadowedSkill>,
    /// Files that cannot be read as skills.
    pub misread: Vec<Misread>,
}

impl Library {
    /// Reads and checks all skills. A folder that is not there has none. `is_known` says whether
    /// the person has once said that a skill of this place and name is followed.
    pub fn read(places: &SkillFolders, is_known: &dyn Fn(&Skill) -> bool) -> Self {
        Self::read_with(places, Care::Whole, is_known)
    }

    /// Reads all skills for a run. Triggers are only checked when a goal matches them, which takes
    /// a fraction of the time.
    pub fn read_for_run(places: &SkillFolders, is_known: &dyn Fn(&Skill) -> bool) -> Self {
        Self::read_with(places, Care::WithoutTriggers, is_known)
    }

    fn read_with(places: &SkillFolders, care: Care, is_known: &dyn Fn(&Skill) -> bool) -> Self {
        let mut found = SkillScan::new(care, is_known);
        for folder in &places.user {
            found.folder(folder, &SkillPlace::User);
            found.packages(folder, |_| SkillPlace::User);
        }
        for folder in &places.project {
            found.folder(folder, &SkillPlace::Project);
        }
        if let Some(folder) = &places.installed {
            found.packages(folder, SkillPlace::Installed);
        }
        for (name, text) in places.built_in {
            let path = PathBuf::from(format!("{name}/{FILE}"));
            found.take(path, &SkillPlace::BuiltIn, Ok((*text).to_owned()));
        }
        found.library()
    }

    /// Reads one skill: a folder with a `SKILL.md`, or a file.
    pub fn read_one(path: &Path, place: SkillPlace) -> Self {
        let file = if path.is_dir() {
            path.join(FILE)
        } else {
            path.to_owned()
        };
        let mut found = SkillScan::new(Care::Whole, &|_| true);
        let text = read_inside(file.parent().unwrap_or(path), &file);
        found.take(file, &place, text);
        found.library()
    }

    /// Checks the text of a skill for a path, and returns the skill.
    ///
    /// # Errors
    /// All mistakes.
    pub fn check(path: &Path, place: SkillPlace, text: &str) -> Result<Skill, Vec<FileMistake>> {
        read(path, place, text, Care::Whole)
    }

    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }
}

/// Reads one skill: a folder with a `SKILL.md`, or a file.
///
/// # Errors
/// All mistakes.
fn read(path: &Path, place: SkillPlace, text: &str, care: Care) -> Result<Skill, Vec<FileMistake>> {
    let draft = if file_form::is_one(text) {
        file_form::read(text)
    } else {
        let folder = match path.file_name() {
            Some(name) if name == FILE => path.parent().and_then(Path::file_name),
            _ => path.file_stem(),
        };
        folder_form::read(text, &folder.unwrap_or_default().to_string_lossy())?
    };
    draft.check(place, path.to_owned(), text, care)
}

pub(crate) fn declared_name(text: &str) -> Option<String> {
    file_form::declared_name(text).or_else(|| folder_form::declared_name(text))
}

struct SkillScan<'a> {
    care: Care,
    is_known: &'a dyn Fn(&Skill) -> bool,
    by_name: BTreeMap<String, Skill>,
    library: Library,
}

impl<'a> SkillScan<'a> {
    fn new(care: Care, is_known: &'a dyn Fn(&Skill) -> bool) -> Self {
        Self {
            care,
            is_known,
            by_name: BTreeMap::new(),
            library: Library::default(),
        }
    }

    fn folder(&mut self, folder: &Path, place: &SkillPlace) {
        let Ok(real) = folder.canonicalize() else {
            return;
        };
        let entries = entries(folder);
        if entries.len() == MAX_SKILLS {
            self.refuse(folder, format!("only {MAX_SKILLS} skills of it are read"));
        }
        for entry in entries {
            let is_text = entry.extension().is_some_and(|extension| extension == "md");
            let file = if entry.is_dir() {
                entry.join(FILE)
            } else {
                entry
            };
            if !file.exists() || !(is_text || file.ends_with(FILE)) {
                continue;
            }
            let text = read_inside(&real, &file);
            self.take(file, place, text);
        }
    }

    /// Reads the skills of the packages in a folder: `PACKAGE/skills/`.
    fn packages(&mut self, folder: &Path, place: impl Fn(String) -> SkillPlace) {
        for package in entries(folder) {
            if !package.join(FILE).exists() {
                let name = package.file_name().unwrap_or_default().to_string_lossy();
                self.folder(&package.join("skills"), &place(name.into_owned()));
            }
        }
    }

    fn take(&mut self, path: PathBuf, place: &SkillPlace, text: io::Result<String>) {
        let read = match text {
            Ok(text) => read(&path, place.clone(), &text, self.care),
            Err(error) => return self.refuse(&path, format!("it cannot be read: {error}")),
        };
        match read {
            Ok(skill) if !(self.is_known)(&skill) => self.library.unknown.push(skill),
            Ok(skill) => match self.by_name.get(&skill.name) {
                Some(first) => self.library.shadowed.push(ShadowedSkill {
                    by: first.path.clone(),
                    skill,
                }),
                None => {
                    self.by_name.insert(skill.name.clone(), skill);
                }
            },
            Err(mistakes) => self.library.misread.push(Misread { path, mistakes }),
        }
    }

    fn refuse(&mut self, path: &Path, message: String) {
        self.library.misread.push(Misread {
            path: path.to_owned(),
            mistakes: vec![FileMistake {
                line: 1,
                message,
                nearest: None,
            }],
        });
    }

    fn library(mut self) -> Library {
        self.library.skills = self.by_name.into_values().collect();
        self.library
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let is_hidden = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    let entries = entries.flatten().take(MAX_ENTRIES);
    let mut paths: Vec<PathBuf> = entries
        .filter(|entry| !is_hidden(entry))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    // Always the same ones.
    paths.truncate(MAX_SKILLS);
    paths
}

fn read_inside(folder: &Path, file: &Path) -> io::Result<String> {
    let real = file.canonicalize()?;
    if !real.starts_with(folder) {
        return Err(io::Error::other("it leads out of its folder"));
    }
    if !fs::metadata(&real)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    let mut limited = fs::File::open(&real)?.take(MAX_FILE + 1);
    limited.read_to_string(&mut text)?;
    if limited.limit() == 0 {
        let error = format!("it is larger than {MAX_FILE} bytes");
        return Err(io::Error::other(error));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::SkillPermission;

    const FOLDER: &str = "---\nname: NAME\ndescription: Fills in forms.\nmetadata:\n  triggers: |\n    (?i)\\bfill in\\b\n    (?i)\\bform\\b\n  max-steps: \"12\"\nallowed-tools: read write\n---\n# How\nStep by step.\n";
    const SINGLE: &str = "# SKILL: twitter-post\n\n## Description\nPost a tweet\non X.\n\n## Triggers\n- `(?i)\\btweet\\b`\n\n## Steps\n1. Look.\n2. Post.\n\n## Hints\nBe kind.\n\n## Permissions\n- network\n\n## MaxIterations\n20\n";

    fn named(name: &str) -> String {
        FOLDER.replace("NAME", name)
    }

    fn places(user: &Path, project: &Path) -> SkillFolders {
        SkillFolders {
            user: vec![user.to_owned()],
            project: vec![project.to_owned()],
            ..SkillFolders::default()
        }
    }

    #[test]
    fn both_forms_are_read_and_the_first_place_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (user, project) = (folder.path().join("user"), folder.path().join("project"));
        for (place, name) in [
            (&user, "fill-form"),
            (&project, "fill-form"),
            (&project, "other"),
        ] {
            fs::create_dir_all(place.join(name)).unwrap();
            fs::write(place.join(name).join(FILE), named(name)).unwrap();
        }
        fs::write(user.join("twitter-post.md"), SINGLE).unwrap();
        fs::write(user.join("notes.txt"), "no skill").unwrap();
        fs::create_dir_all(user.join("office/skills")).unwrap();
        fs::write(
            user.join("office/skills/stamp.md"),
            SINGLE.replace("twitter-post", "stamp"),
        )
        .unwrap();
        let library = Library::read(&places(&user, &project), &|_| true);
        assert_eq!(library.misread, []);
        let names: Vec<_> = library
            .skills
            .iter()
            .map(|skill| (&*skill.name, skill.place.clone()))
            .collect();
        assert_eq!(
            names,
            [
                ("fill-form", SkillPlace::User),
                ("other", SkillPlace::Project),
                ("stamp", SkillPlace::User),
                ("twitter-post", SkillPlace::User)
            ]
        );
        assert_eq!(library.shadowed.len(), 1);
        let form = library.get("fill-form").unwrap();
        assert_eq!((form.triggers.len(), form.max_steps), (2, Some(12)));
        assert_eq!(form.permissions, SkillPermission::read("read write"));
        let tweet = library.get("twitter-post").unwrap();
        assert_eq!(tweet.description, "Post a tweet on X.");
        assert_eq!(
            tweet.instructions,
            "1. Look.\n2. Post.\n\n## Hints\nBe kind."
        );
        assert_eq!(
            (tweet.max_steps, &tweet.permissions[..]),
            (Some(20), &SkillPermission::read("network")[..])
        );
    }

    #[test]
    fn of_very_many_skills_the_same_ones_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MAX_SKILLS + 50 {
            let name = format!("skill-{number:04}");
            let text = SINGLE.replace("twitter-post", &name);
            fs::write(folder.path().join(format!("{name}.md")), text).unwrap();
        }
        let library = Library::read_for_run(&places(folder.path(), Path::new("/none")), &|_| true);
        assert_eq!(library.skills.len(), MAX_SKILLS);
        assert!(library.get("skill-0000").is_some() && library.get("skill-2049").is_none());
        let told = library.misread[0].mistakes[0].to_string();
        assert!(told.contains("only 2000 skills of it are read"), "{told}");
    }

    #[test]
    fn every_mistake_is_named_and_nothing_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let (user, project) = (folder.path().join("user"), folder.path().join("project"));
        fs::create_dir_all(user.join("broken")).unwrap();
        let broken = named("Broken--")
            .replace("description", "descripton")
            .replace("\"12\"", "\"0\"")
            .replace("(?i)\\bform\\b", ".*");
        fs::write(user.join("broken").join(FILE), broken).unwrap();
        fs::write(folder.path().join("secret"), "# SKILL: secret\n").unwrap();
        std::os::unix::fs::symlink(folder.path().join("secret"), user.join("link.md")).unwrap();
        fs::write(user.join("huge.md"), "x".repeat(300 << 10)).unwrap();
        fs::write(user.join("bytes.md"), [0xff, 0xfe]).unwrap();
        let library = Library::read(&places(&user, &project), &|_| true);
        assert_eq!(library.skills, []);
        let told: Vec<String> = library
            .misread
            .iter()
            .flat_map(|misread| misread.mistakes.iter().map(ToString::to_string))
            .collect();
        let told = told.join("\n");
        for words in [
            "line 1: `description` is missing",
            "did you mean `description`?",
            "line 2: invalid `name`",
            "its folder is `broken`",
            "matches everything",
            "invalid number of steps: 1 to 10000",
            "it leads out of its folder",
            "it is larger than",
            "valid UTF-8",
        ] {
            assert!(told.contains(words), "{words}\n{told}");
        }
    }
}
