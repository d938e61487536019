//! Packages as they come, and as they should not.

use std::{fs, io::Write as _, path::PathBuf};

use super::*;

const SKILL: &str = "---\nname: water-plants\ndescription: Waters plants.\n---\nWater them.\n";

/// Returns an entry of a tar archive.
fn tar_entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[156] = kind;
    header[257..262].copy_from_slice(b"ustar");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut entry = header.to_vec();
    entry.extend_from_slice(content);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

/// Returns an uncompressed zip archive of files, as made on Unix.
fn zip(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, mode, content) in entries {
        let at = u32::try_from(archive.len()).unwrap().to_le_bytes();
        let length = u16::try_from(name.len()).unwrap().to_le_bytes();
        let size = u32::try_from(content.len()).unwrap().to_le_bytes();
        archive.extend([&b"PK\x03\x04"[..], &[0; 14], &size, &size, &length, &[0; 2]].concat());
        archive.extend(name.as_bytes());
        archive.extend(*content);
        let version: &[u8] = &[20, UNIX];
        let head = [
            &b"PK\x01\x02"[..],
            version,
            &[0; 14],
            &size,
            &size,
            &length,
            &[0; 8],
        ];
        directory.extend([&head.concat()[..], &(mode << 16).to_le_bytes(), &at].concat());
        directory.extend(name.as_bytes());
    }
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    let (at, size) = (archive.len(), directory.len());
    archive.extend(directory);
    archive.extend([&b"PK\x05\x06"[..], &[0; 4], &count, &count].concat());
    archive.extend(u32::try_from(size).unwrap().to_le_bytes());
    archive.extend(u32::try_from(at).unwrap().to_le_bytes());
    archive.extend([0; 2]);
    archive
}

const UNIX: u8 = 3;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Packs entries of a tar archive.
    fn tgz(&self, entries: &[Vec<u8>]) -> PathBuf {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&entries.concat()).unwrap();
        packer.write_all(&[0; 1024]).unwrap();
        self.file("package.tgz", &packer.finish().unwrap())
    }
}

fn names(package: &Package) -> Vec<&str> {
    let skills = package.skills.iter();
    skills.map(|one| one.skill.name.as_str()).collect()
}

#[test]
fn every_form_is_read() {
    let folder = Folder::new();
    let skill = SKILL.as_bytes();
    folder.file("any/SKILL.md", skill);
    folder.file("any/scripts/run.sh", b"#!/bin/sh\n");
    let package = Package::read(&folder.0.path().join("any")).unwrap();
    assert_eq!(
        (names(&package), package.plugin.as_deref()),
        (vec!["water-plants"], None)
    );
    assert_eq!(package.skills[0].files.len(), 2);

    let single = "# SKILL: warble\n\n## Description\nWarbles.\n\n## Steps\nWarble.\n";
    let package = Package::read(&folder.file("w.md", single.as_bytes())).unwrap();
    assert_eq!(names(&package), ["warble"]);

    let manifest = br#"{"name": "@garden/tools", "scripts": {"postinstall": "touch FLAG"}}"#;
    let packed = folder.tgz(&[
        tar_entry("package/package.json", b'0', manifest),
        tar_entry("package/skills/", b'5', b""),
        tar_entry("package/skills/plants/SKILL.md", b'0', skill),
        tar_entry("package/skills/warble.md", b'0', single.as_bytes()),
        tar_entry("package/index.js", b'0', b"evil()"),
    ]);
    let package = Package::read(&packed).unwrap();
    assert_eq!(names(&package), ["warble", "water-plants"]);
    assert_eq!(package.plugin.as_deref(), Some("garden-tools"));
    assert_eq!(package.left_behind, 2);

    let manifest = br#"{"name": "garden", "skills": ["./one/", "two"]}"#;
    let other = SKILL.replace("water-plants", "cut-hedge");
    let zipped = zip(&[
        ("garden/.claude-plugin/plugin.json", 0o100_644, manifest),
        ("garden/one/SKILL.md", 0o100_644, skill),
        ("garden/two/", 0o040_755, b""),
        ("garden/two/hedge/SKILL.md", 0o100_644, other.as_bytes()),
        ("garden/two/hedge/scripts/cut.sh", 0o100_755, b"#!/bin/sh\n"),
    ]);
    let package = Package::read(&folder.file("garden.zip", &zipped)).unwrap();
    assert_eq!(names(&package), ["cut-hedge", "water-plants"]);
    let script = package.skills[0].files.get("scripts/cut.sh").unwrap();
    assert!(script.is_executable);
}

#[test]
fn archives_that_would_do_more_are_refused() {
    let folder = Folder::new();
    let skill = SKILL.as_bytes();
    let large = vec![0; 3 << 20];
    let many: Vec<_> = (0..1_100)
        .map(|number| tar_entry(&format!("f{number}"), b'0', b""))
        .collect();
    let half = vec![7; 1 << 20];
    let bomb: Vec<_> = (0..20)
        .map(|number| tar_entry(&format!("f{number}"), b'0', &half))
        .collect();
    let twice = vec![
        tar_entry("SKILL.md", b'0', skill),
        tar_entry("skill.MD", b'0', skill),
    ];
    for (entries, words) in [
        (vec![tar_entry("../evil", b'0', b"")], "holds `..`"),
        (vec![tar_entry("a/../../evil", b'0', b"")], "holds `..`"),
        (vec![tar_entry("/etc/evil", b'0', b"")], "absolute"),
        (vec![tar_entry("SKILL.md", b'2', b"")], "it is a link"),
        (vec![tar_entry("hard", b'1', b"")], "it is a link"),
        (vec![tar_entry("device", b'3', b"")], "a device"),
        (vec![tar_entry("pipe", b'6', b"")], "a device"),
        (vec![tar_entry("large", b'0', &large)], "is larger than"),
        (many, "too many files"),
        (bomb, "larger than"),
        (twice, "comes twice"),
    ] {
        let refused = Package::read(&folder.tgz(&entries))
            .unwrap_err()
            .to_string();
        assert!(refused.contains(words), "{words}: {refused}");
    }
    let link = zip(&[("SKILL.md", 0o120_777, b"/etc/passwd")]);
    let out = zip(&[("../evil", 0o100_644, b"")]);
    let twice = zip(&[
        ("SKILL.md", 0o100_644, skill),
        ("SKILL.md", 0o100_644, b"x"),
    ]);
    let mut other_name = zip(&[("SKILL.md", 0o100_644, skill)]);
    other_name[30] = b'X';
    for (archive, words) in [
        (link, "a link"),
        (out, "holds `..`"),
        (twice, "comes twice"),
        (other_name, "another name in front of it"),
        (b"PK".to_vec(), "too short"),
        (vec![b'x'; 100], "its directory is missing"),
    ] {
        let file = folder.file("a.zip", &archive);
        let refused = Package::read(&file).unwrap_err().to_string();
        assert!(refused.contains(words), "{words}: {refused}");
    }
}

#[test]
fn damaged_archives_are_errors_and_never_panics() {
    let folder = Folder::new();
    let skill = SKILL.as_bytes();
    let whole = zip(&[("s/SKILL.md", 0o100_644, skill), ("s/a", 0o100_644, b"x")]);
    let tarred = [
        tar_entry("s/SKILL.md", b'0', skill),
        tar_entry("s/a", b'0', b"x"),
    ]
    .concat();
    let mut random = fastrand::Rng::with_seed(18);
    for _ in 0..2_000 {
        for (name, archive) in [("a.zip", &whole), ("a.tgz", &tarred)] {
            let mut archive = archive.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..archive.len());
                archive[at] = random.u8(..);
            }
            archive.truncate(random.usize(..=archive.len()));
            if name == "a.zip" {
                let _ = super::zip::read(&archive);
            } else {
                let _ = super::tar::read(archive.as_slice());
            }
        }
    }
    let file = folder.file("a.tgz", b"not packed");
    assert!(Package::read(&file).is_err());
}

#[test]
fn packages_without_skills_say_what_is_missing() {
    let folder = Folder::new();
    folder.file("repo/skills/plants/SKILL.md", SKILL.as_bytes());
    let PackageError::Form { hint, .. } = Package::read(&folder.0.path().join("repo")).unwrap_err()
    else {
        panic!("expected an error about the form");
    };
    assert_eq!(
        hint.as_deref(),
        Some("there are skills in it; install one: skills/plants/SKILL.md")
    );
    folder.file("repo/package.json", br#"{"name": "Not A Name"}"#);
    let refused = Package::read(&folder.0.path().join("repo")).unwrap_err();
    assert!(refused.to_string().contains("invalid name `Not A Name`"));
    for (skills, words) in [
        ("\"../..\"", "holds `..`"),
        ("7", "invalid `skills`"),
        ("[\"nowhere\"]", "has no skills"),
    ] {
        let manifest = format!("{{\"name\": \"garden\", \"skills\": {skills}}}");
        folder.file("repo/package.json", manifest.as_bytes());
        let refused = Package::read(&folder.0.path().join("repo")).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
    let greedy = SKILL.replace(
        "\n---\nW",
        "\nmetadata:\n  triggers: .*\n  max-steps: many\n---\nW",
    );
    let single = folder.file("greedy.md", greedy.as_bytes());
    let refused = Package::read(&single).unwrap_err().to_string();
    for words in ["line 5", "matches everything", "invalid number of steps"] {
        assert!(refused.contains(words), "{refused}");
    }
}
