use std::fs;

use PathChange::{Changed, Created, Deleted, Special};

use super::*;

fn changed(path: &str, change: PathChange) -> ChangedPath {
    ChangedPath {
        path: path.into(),
        change,
    }
}

/// A workspace with these files, each with its text; `NAME -> TARGET` is a link.
fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    folder
}

/// Returns the withheld paths of these changes.
fn judged(workspace: &Path, programs: &[PathBuf], changes: &[ChangedPath]) -> Vec<PathBuf> {
    let workspace = fs::canonicalize(workspace).unwrap();
    let added = ControlTable::default();
    let surroundings = WorkspaceState::look(&workspace, None, &added, &mut Vec::new());
    let around = ChangeSite {
        workspace: &workspace,
        programs,
        added: &added,
        surroundings: &surroundings,
    };
    let withheld = withheld(changes, &around).into_iter();
    withheld
        .map(|one| changes[one.index].path.clone())
        .collect()
}

#[test]
fn control_files_are_known_by_name() {
    for (path, expected) in [
        (".envrc", true),
        ("a/b/.ENVRC", true),
        (".vscode/tasks.json", true),
        ("sub/.github/workflows/ci.yml", true),
        (".github/ISSUE_TEMPLATE.md", false),
        ("x.code-workspace", true),
        (".git/hooks/pre-commit", true),
        ("sub/.git", true),
        ("agents.md", true),
        ("src/agents.rs", false),
        ("package.json", false),
        ("lefthook-local.yml", true),
        ("lefthook.toml", true),
        ("lint-staged.config.mjs", true),
        (".prettierrc.d.ts.json", true),
        ("mise/config.toml", true),
        ("mise/other.toml", false),
        (".config/mise/conf.d/x.toml", true),
        ("src/mise.rs/x", false),
        ("vite.config.js", false),
        ("model.pth", false),
        ("tools/bazel", true),
        ("tools/x", false),
        ("envrc", false),
    ] {
        assert_eq!(obeyed_by(Path::new(path)).is_some(), expected, "{path}");
    }
}

#[test]
fn the_table_holds_what_it_says() {
    let table = embedded();
    assert!(table.names() > 700, "{}", table.names());
    for (text, expected) in [
        ("", true),
        (
            "[[tool]]\nby='x'\ndoes='y'\nacts='enter'\nfiles=['a']",
            true,
        ),
        (
            "[[tool]]\nby='x'\ndoes='y'\nacts='never'\nfiles=['a']",
            false,
        ),
        ("[[tool]]\nby='x'\ndoes='y'\nacts='enter'", false),
        (
            "[[tool]]\nby='x'\ndoes='y'\nacts='enter'\nfiles=['*']",
            false,
        ),
        (
            "[[tool]]\nby='x'\ndoes='y'\nacts='enter'\nfiles=['../a']",
            false,
        ),
        (
            "[[tool]]\nby='x'\ndoes='y'\nacts='enter'\nnames=['a']",
            false,
        ),
    ] {
        assert_eq!(ControlTable::parse(text).is_ok(), expected, "{text}");
    }
    let own = ControlTable::listed("deploy/")
        .unwrap()
        .and(&ControlTable::listed("x.toml").unwrap());
    for (path, expected) in [("a/deploy/b", true), ("X.TOML", true), ("y.toml", false)] {
        assert_eq!(
            own.find(&parts(Path::new(path))).next().is_some(),
            expected,
            "{path}"
        );
    }
}

#[test]
fn changes_by_commands_are_withheld() {
    let folder = workspace(&[
        ("bare/HEAD", ""),
        ("bare/config", ""),
        ("bare/objects/x", ""),
        ("bare/refs/x", ""),
        ("half/HEAD", ""),
        ("sub/Makefile", ""),
        ("gen/Makefile", "all:"),
        (".gitignore", "target\n"),
        ("Cargo.toml", ""),
        ("tools/x", ""),
    ]);
    let workspace = folder.path();
    let programs = [workspace.join(".venv/bin"), PathBuf::from("/usr/bin")];
    for (path, change, expected) in [
        (".envrc", Deleted, true),
        ("Makefile", Changed, true),
        ("Makefile", Created, true),
        ("sub/Makefile", Deleted, false),
        ("build/Makefile", Created, false),
        ("sub/GNUmakefile", Created, true),
        ("build/GNUmakefile", Changed, true),
        ("sub/Makefile.sh", Created, true),
        ("sub/Makefile,v", Created, true),
        ("sub/RCS/Makefile,v", Created, true),
        ("sub/SCCS/s.Makefile", Created, true),
        ("build/Makefile.sh", Created, false),
        (".venv/bin/ls", Created, true),
        (".venv/lib/x.py", Created, false),
        ("src/main.rs", Changed, false),
        (".config", Created, true),
        ("tools", Created, false),
        ("target/x/.travis.yml", Created, false),
        ("target/x/.npmrc", Created, false),
        ("target/x/AGENTS.md", Created, false),
        ("target/x/.envrc", Created, true),
        ("target/x/.vscode/tasks.json", Created, true),
        ("other/x/.npmrc", Created, true),
        (".venv/pyvenv.cfg", Created, true),
        ("pyvenv.cfg", Changed, true),
        ("sub/.eslintrc.js", Created, true),
        (".gitignore", Special, true),
    ] {
        let found = judged(workspace, &programs, &[changed(path, change)]);
        assert_eq!(!found.is_empty(), expected, "{path} {change:?}");
    }
    let begun = [
        "new",
        "new/.eslintrc.js",
        "new/.python-version",
        "new/pyvenv.cfg",
        "new/.envrc",
    ];
    let begun = judged(workspace, &[], &begun.map(|path| changed(path, Created)));
    assert_eq!(begun, [PathBuf::from("new/.envrc")]);
    // What these changes made is not build output yet.
    let output = ["target", "target/x", "target/x/.npmrc"];
    let output = judged(workspace, &[], &output.map(|path| changed(path, Created)));
    assert_eq!(output, [PathBuf::from("target/x/.npmrc")]);
    let bare = [
        "bare/HEAD",
        "bare/config",
        "bare/objects",
        "half/HEAD",
        "half/config",
    ];
    let found = judged(workspace, &[], &bare.map(|path| changed(path, Created)));
    assert_eq!(
        found,
        [PathBuf::from("bare/HEAD"), PathBuf::from("bare/config")]
    );
    let completed = ["bare/objects", "bare/objects/aa", "other/objects"];
    let found = judged(
        workspace,
        &[],
        &completed.map(|path| changed(path, Created)),
    );
    assert_eq!(found.len(), 2);
    // In a layer nothing of it stands in the workspace yet.
    let whole = ["r", "r/HEAD", "r/config", "r/objects", "r/refs"];
    let found = judged(workspace, &[], &whole.map(|path| changed(path, Created)));
    assert_eq!(found, [PathBuf::from("r/HEAD"), PathBuf::from("r/config")]);
}

#[test]
fn what_control_files_read_is_one() {
    let folder = workspace(&[
        (
            "Makefile",
            "-include local.mk mk/*.mk\ninclude $(TOP)/rules.mk\nV := $(shell sh ver.sh)\n-include main.d\nall: main.c\n",
        ),
        ("conf/rules.mk", "include deep.mk\n"),
        ("main.c", ""),
        (
            ".envrc",
            "source env.sh\nuse flake\nPATH_add bin\nexport DATA=data.csv\n",
        ),
        (
            ".husky/pre-commit",
            "npm test\n. \"$(dirname \"$0\")/common\"\npython3 tools/check.py --all\n",
        ),
        (".husky/common", ""),
        ("tools/check.py", ""),
        (
            ".vscode/settings.json",
            "{\"typescript.tsdk\": \"./node_modules/typescript\", \"x\": \"./tsconfig.json\"}",
        ),
        (".prettierrc", "plugins: [\"./format.js\"]\n"),
        (
            "eslint.config.mjs",
            "import x from './rules/own';\nexport default [{ files: ['./src/**/*.ts'] }];",
        ),
        ("rules/own.js", ""),
        ("src/a.ts", ""),
        (
            "CLAUDE.md",
            "See @docs/style.md and docs/other.md, and run ./x.sh",
        ),
        ("docs/style.md", ""),
        ("docs/other.md", ""),
        (
            ".git/config",
            "[include]\n\tpath = ../shared.gitconfig\n[core]\n\thooksPath = hooks\n[branch \"main\"]\n\tmerge = refs/heads/main\n",
        ),
        (".git/hooks/post-checkout", "#!/bin/sh\n./after.sh\n"),
        (".gitlab-ci.yml", "include:\n  - local: /ci/build.yml\n"),
        ("ci/build.yml", ""),
    ]);
    for (path, expected) in [
        ("local.mk", true),
        ("mk/a.mk", true),
        ("conf/rules.mk", true),
        ("deep.mk", true),
        ("deep.mk.sh", true),
        ("ver.sh", true),
        ("main.d", false),
        ("main.c", false),
        ("env.sh", true),
        ("flake.nix", true),
        ("bin/ls", true),
        ("data.csv", false),
        (".husky/common", true),
        ("tools/check.py", true),
        ("tools/other.py", false),
        ("tsconfig.json", false),
        ("node_modules/typescript/x.js", false),
        ("format.js", true),
        ("rules/own.js", true),
        ("src/a.ts", false),
        ("docs/style.md", true),
        ("docs/other.md", false),
        ("x.sh", false),
        ("shared.gitconfig", true),
        ("hooks/pre-push", true),
        ("after.sh", true),
        ("ci/build.yml", true),
        ("package.json", false),
    ] {
        for change in [Created, Changed] {
            let found = judged(folder.path(), &[], &[changed(path, change)]);
            assert_eq!(!found.is_empty(), expected, "{path} {change:?}");
        }
    }
}

#[test]
fn links_give_files_other_names() {
    let folder = workspace(&[
        ("docs/agents.md.txt", ""),
        ("CLAUDE.md", "-> docs/agents.md.txt"),
        ("editor/tasks.json", ""),
        (".vscode", "-> editor"),
        ("conf/x", ""),
        (".config", "-> conf"),
        ("build/rules.mk", ""),
        ("Makefile", "-> build/rules.mk"),
        ("shown/x", ""),
        ("plain", "-> shown"),
        ("AGENTS.md", "-> docs/missing.md"),
    ]);
    for (path, expected) in [
        ("docs/agents.md.txt", true),
        ("docs/other.txt", false),
        ("editor/tasks.json", true),
        ("editor/new.json", true),
        ("conf/mise/config.toml", true),
        ("conf/other/config.toml", false),
        ("build/rules.mk", true),
        ("shown/x", false),
        ("docs/missing.md", true),
    ] {
        let found = judged(folder.path(), &[], &[changed(path, Changed)]);
        assert_eq!(!found.is_empty(), expected, "{path}");
    }
}

#[test]
fn files_that_are_written_one_by_one_make_no_repository() {
    let folder = workspace(&[("r/HEAD", ""), ("r/config", ""), ("r/objects/x", "")]);
    let workspace = fs::canonicalize(folder.path()).unwrap();
    let added = ControlTable::default();
    let surroundings = WorkspaceState::look(&workspace, None, &added, &mut Vec::new());
    let around = ChangeSite {
        workspace: &workspace,
        programs: &[],
        added: &added,
        surroundings: &surroundings,
    };
    let asked = |files: &[&str]| {
        let files: Vec<_> = files
            .iter()
            .map(|file| (PathBuf::from(file), true))
            .collect();
        let reasons = withheld_writes(&files, &around).into_iter();
        reasons.map(|reason| reason.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(asked(&["r/refs/heads/x"]), [true]);
    assert_eq!(asked(&["r/objects/y", "new/HEAD"]), [false, false]);
    assert_eq!(
        asked(&["n/HEAD", "n/refs/a", "n/objects/b"]),
        [true, false, false]
    );
    assert_eq!(
        asked(&["Makefile", "sub/Makefile", "src/x.rs"]),
        [true, false, false]
    );
}
