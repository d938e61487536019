//! Packages that can be installed: a folder with a `SKILL.md`, a single file, a plugin or npm package with
//! skills in it, or an archive of one of these. It is read once; no script of it is ever run.

use std::{collections::BTreeMap, fs, io::Read as _, path::Path};

use gyrus_text::FileMistake;
use serde_json::Value;

use crate::{
    files::{
        MAX_FILES, MAX_TOTAL_BYTES, SKILL_FILE as FILE, SkillFile, SkillFiles, SkillFilesError,
    },
    library::Library,
    skill::{Skill, SkillPlace, is_name},
};

mod tar;
mod zip;

/// Maximum size of an archive in bytes.
const MAX_ARCHIVE: u64 = 16 << 20;

/// Maximum number of skills of a plugin.
const MAX_SKILLS: usize = 100;

/// The files that mark a folder as a plugin or an npm package, one path per line; the first that is
/// there counts.
const MANIFESTS: &str = include_str!("package/manifests.txt");

/// The reason why a package cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The files cannot be taken.
    #[error(transparent)]
    Files(#[from] SkillFilesError),
    /// A skill in the package is invalid.
    #[error("`{path}`: {mistakes}")]
    Skill {
        /// The file, within the package.
        path: String,
        /// All mistakes, each with its line.
        mistakes: String,
    },
    /// The package has a form that cannot be installed.
    #[error("{what}")]
    Form {
        what: String,
        /// The names of skills that could be installed instead.
        hint: Option<String>,
    },
}

#[derive(Debug)]
pub struct PackagedSkill {
    /// The checked skill.
    pub skill: Skill,
    /// All files of the skill, with its text as `SKILL.md`.
    pub files: SkillFiles,
}

/// Skills that are installed together.
#[derive(Debug)]
pub struct Package {
    /// Name of the plugin; `None` for a skill by itself.
    pub plugin: Option<String>,
    /// The skills, sorted by name.
    pub skills: Vec<PackagedSkill>,
    /// Number of files that belong to no skill and are left out.
    pub left_behind: usize,
}

impl Package {
    /// Reads a folder, a file or an archive.
    ///
    /// # Errors
    /// The package cannot be installed.
    pub fn read(path: &Path) -> Result<Self, PackageError> {
        Self::of(read_package(path)?)
    }

    fn of(files: SkillFiles) -> Result<Self, PackageError> {
        if files.get(FILE).is_some() {
            let skill = check(&files, FILE)?;
            return Ok(Self {
                plugin: None,
                skills: vec![PackagedSkill { skill, files }],
                left_behind: 0,
            });
        }
        if let Some(path) = manifest_path(&files) {
            return Self::plugin(&files, path);
        }
        let folders: Vec<_> = skill_folders(&files, "").into_keys().collect();
        let hint = (!folders.is_empty()).then(|| {
            format!(
                "there are skills in it; install one: {}",
                folders.join(", ")
            )
        });
        let what = format!("there is no {FILE}, plugin.json or package.json at its top");
        Err(PackageError::Form { what, hint })
    }

    fn plugin(files: &SkillFiles, path: &str) -> Result<Self, PackageError> {
        let broken = |mistakes: String| PackageError::Skill {
            path: path.to_owned(),
            mistakes,
        };
        let text = files.text(path).unwrap_or_default();
        let manifest: Value =
            serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
        let given = manifest["name"].as_str().unwrap_or_default();
        let Some(plugin) = plugin_name(given) else {
            let what = format!("invalid name `{given}`: small letters, digits and single hyphens");
            return Err(broken(what));
        };
        let skills = packaged_skills(files, (path, &manifest))?;
        if skills.is_empty() {
            return Err(PackageError::Form {
                what: format!("`{given}` has no skills: none lie in its folder `skills`"),
                hint: None,
            });
        }
        let taken: usize = skills.iter().map(|skill| skill.files.len()).sum();
        Ok(Self {
            plugin: Some(plugin),
            left_behind: files.len().saturating_sub(taken),
            skills,
        })
    }
}

/// Reads the files of a folder, file or archive, without an archive's single top folder.
///
/// # Errors
/// Something in it cannot be taken.
pub fn read_package(path: &Path) -> Result<SkillFiles, PackageError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if path.is_dir() {
        return Ok(SkillFiles::read(path)?);
    }
    if name.ends_with(".md") {
        return Ok(SkillFiles::single(path)?);
    }
    let is = |ending: &str| name.to_lowercase().ends_with(ending);
    let files = if is(".tgz") || is(".tar.gz") {
        let archive = read_archive(path)?;
        // What packs much better than texts do is not unpacked to its end.
        let unpacked = flate2::read::GzDecoder::new(archive.as_slice());
        tar::read(unpacked.take(2 * MAX_TOTAL_BYTES))?
    } else if is(".zip") {
        zip::read(&read_archive(path)?)?
    } else {
        return Err(PackageError::Form {
            what: format!("`{name}` is not a folder, NAME.md, .tgz, .tar.gz or .zip"),
            hint: None,
        });
    };
    Ok(without_top_folder(files).without_left_out())
}

/// Returns the path of the file by which files are recognised as a plugin or an npm package.
pub fn manifest_path(files: &SkillFiles) -> Option<&'static str> {
    MANIFESTS.lines().find(|path| files.get(path).is_some())
}

/// Returns the name here of a plugin whose manifest gives this one, which npm may write as
/// `@scope/name`; `None` if it is not a valid one.
pub fn plugin_name(given: &str) -> Option<String> {
    let name = given.trim_start_matches('@').replace('/', "-");
    is_name(&name).then_some(name)
}

/// Returns the skills of a plugin, sorted by name. The manifest is given with its path.
///
/// # Errors
/// A skill is invalid, or there are too many.
pub fn packaged_skills(
    files: &SkillFiles,
    (path, manifest): (&str, &Value),
) -> Result<Vec<PackagedSkill>, PackageError> {
    let broken = |mistakes: String| PackageError::Skill {
        path: path.to_owned(),
        mistakes,
    };
    let mut found = BTreeMap::new();
    for folder in manifest_places(manifest, "skills").map_err(broken)? {
        found.extend(skill_folders(files, &folder));
    }
    if found.len() > MAX_SKILLS {
        return Err(PackageError::Form {
            what: format!("it has more than {MAX_SKILLS} skills"),
            hint: None,
        });
    }
    let mut skills = BTreeMap::new();
    for (path, files) in found {
        let skill = check(&files, &path)?;
        let name = skill.name.clone();
        if let Some(PackagedSkill { .. }) =
            skills.insert(name.clone(), PackagedSkill { skill, files })
        {
            return Err(broken(format!("two of its skills have the name `{name}`")));
        }
    }
    Ok(skills.into_values().collect())
}

fn read_archive(path: &Path) -> Result<Vec<u8>, SkillFilesError> {
    let failed = |source| SkillFilesError::Io {
        path: path.display().to_string(),
        source,
    };
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() || metadata.len() > MAX_ARCHIVE {
        return Err(SkillFilesError::TooMuch {
            what: "it is not a regular file, or it is too large".to_owned(),
            most: format!("{MAX_ARCHIVE} bytes"),
        });
    }
    fs::read(path).map_err(failed)
}

/// Returns the files below their only top folder, such as npm's `package`.
fn without_top_folder(files: SkillFiles) -> SkillFiles {
    let top = |path: &str| path.split_once('/').map(|(top, _)| top.to_owned());
    let first = files.iter().next().and_then(|(path, _)| top(path));
    match first {
        Some(first)
            if files
                .iter()
                .all(|(path, _)| top(path).as_ref() == Some(&first)) =>
        {
            files.below(&first)
        }
        Some(_) | None => files,
    }
}

/// Returns the folders or files with parts of a kind according to a manifest; the folder of the
/// kind's name if it says nothing.
///
/// # Errors
/// A path leads out, or it is neither a text nor a list.
pub fn manifest_places(manifest: &Value, kind: &str) -> Result<Vec<String>, String> {
    let named = match &manifest[kind] {
        Value::Null => return Ok(vec![kind.to_owned()]),
        Value::String(one) => vec![one.as_str()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    if named.is_empty() || named.len() > MAX_SKILLS {
        return Err(format!(
            "invalid `{kind}`: it is a folder, or a list of folders"
        ));
    }
    let plain = |path: &str| {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let checked = crate::files::check_path(path);
        checked.map_err(|error| format!("invalid `{kind}`: {error}"))?;
        Ok(path.to_owned())
    };
    named.into_iter().map(plain).collect()
}

/// Returns the skills in a folder, each with its files: the folder itself, folders with a
/// `SKILL.md`, and single files.
fn skill_folders(files: &SkillFiles, folder: &str) -> BTreeMap<String, SkillFiles> {
    let below = if folder.is_empty() {
        files.clone()
    } else {
        files.below(folder)
    };
    if !folder.is_empty() && below.get(FILE).is_some() {
        return BTreeMap::from([(format!("{folder}/{FILE}"), below)]);
    }
    let mut found = BTreeMap::new();
    for (path, file) in below.iter().take(MAX_FILES) {
        let whole = format!("{folder}/{path}");
        let whole = whole.trim_start_matches('/').to_owned();
        if let Some(inner) = path.strip_suffix(&format!("/{FILE}")) {
            if !inner.contains('/') || folder.is_empty() {
                found.insert(whole, below.below(inner));
            }
        } else if path.ends_with(".md") && !path.contains('/') && is_single(file) {
            let mut single = SkillFiles::default();
            let added = single.add(FILE.to_owned(), file.clone());
            added.expect("one file of a package fits");
            found.insert(whole, single);
        }
    }
    found
}

fn is_single(file: &SkillFile) -> bool {
    std::str::from_utf8(&file.bytes).is_ok_and(crate::file_form::is_one)
}

/// Parses the text of a skill, whose folder will have its name.
fn check(files: &SkillFiles, path: &str) -> Result<Skill, PackageError> {
    let broken = |mistakes: &[FileMistake]| PackageError::Skill {
        path: path.to_owned(),
        mistakes: mistakes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; "),
    };
    let Some(text) = files.text(FILE) else {
        return Err(PackageError::Skill {
            path: path.to_owned(),
            mistakes: "it is not text".to_owned(),
        });
    };
    let name = crate::library::declared_name(text);
    let place = Path::new(&name.unwrap_or_default()).join(FILE);
    Library::check(&place, SkillPlace::User, text).map_err(|mistakes| broken(&mistakes))
}

#[cfg(test)]
mod tests;
