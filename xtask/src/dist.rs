//! Packages for people who install the program: an archive, a package for Debian, the list of what is inside, checksums, and a
//! signature where there is a key. Made from one commit, all files are the same bytes each time.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::{
    error::CannotStart,
    image,
    programs::run_in,
    release::{Release, pack_tree, packed, said},
    repository,
};

/// The shells whose completions are packed: its name, and where the file lies below `/usr`.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/gyrus"),
    ("fish", "share/fish/vendor_completions.d/gyrus.fish"),
    ("zsh", "share/zsh/vendor-completions/_gyrus"),
];

/// Documents that are packed.
const DOCUMENTS: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

const CHECKSUMS: &str = "SHA256SUMS";

/// The options of the command line.
#[derive(Default)]
struct Options {
    /// An executable that was built already; without it one is built by the profile `dist`.
    program: Option<PathBuf>,
    /// A private key of OpenSSH that signs the checksums.
    key: Option<PathBuf>,
    folder: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options = Self::default();
        for pair in arguments.chunks(2) {
            let [name, path] = pair else {
                bail!(CannotStart(format!("`{}` needs a path after it", pair[0])));
            };
            let option = match name.as_str() {
                "--program" => &mut options.program,
                "--sign" => &mut options.key,
                "--to" => &mut options.folder,
                other => bail!(CannotStart(format!(
                    "`dist` takes --program, --sign and --to, not {other}"
                ))),
            };
            *option = Some(std::path::absolute(path)?);
        }
        Ok(options)
    }
}

/// Makes the packages, and says where they are and how large.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let options = Options::parse(arguments)?;
    let root = repository::root()?;
    let release = Release::read()?;
    let program = match options.program {
        Some(program) => program,
        None => build(&root)?,
    };
    let folder = options
        .folder
        .unwrap_or_else(|| root.join("target/packages"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let parts = tempfile::tempdir()?;
    let tree = parts.path().join(release.name());
    stage(&root, &program, &tree.join("usr"))?;
    archive(&release, &tree, &folder)?;
    image::write(&release, &tree, &folder)?;
    debian_package(&release, &tree, &folder)?;
    let names = packed(&folder)?;
    let sums = said(Command::new("sha256sum").args(&names).current_dir(&folder))?;
    fs::write(folder.join(CHECKSUMS), &sums)?;
    if let Some(key) = options.key {
        let mut sign = Command::new("ssh-keygen");
        sign.args(["-q", "-Y", "sign", "-n", "gyrus", "-f"])
            .arg(key);
        run_in(&folder, sign.arg(CHECKSUMS))?;
    }
    for name in packed(&folder)? {
        let bytes = fs::metadata(folder.join(&name))?.len();
        println!(
            "{:>6.1} MB  {}",
            bytes as f64 / 1e6,
            folder.join(name).display()
        );
    }
    Ok(())
}

/// Builds the program with no path of this machine in it.
fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo_home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let renamed = [
        (root.display().to_string(), "/gyrus"),
        (
            cargo_home.context("neither CARGO_HOME nor HOME is set")?,
            "/cargo",
        ),
    ];
    let flags = renamed.map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    let target = root.join("target/dist-build");
    let mut cargo = repository::cargo(&["build", "--locked", "--package", "gyrus"])?;
    cargo
        .args(["--profile", "dist", "--target-dir"])
        .arg(&target);
    cargo
        .env("RUSTFLAGS", flags.join(" "))
        .env("CARGO_INCREMENTAL", "0");
    run_in(root, &mut cargo)?;
    Ok(target.join("dist/gyrus"))
}

/// Lays out what is installed, as it lies below `/usr`.
fn stage(root: &Path, program: &Path, usr: &Path) -> anyhow::Result<()> {
    let documents = usr.join("share/doc/gyrus");
    fs::create_dir_all(usr.join("bin"))?;
    fs::create_dir_all(&documents)?;
    let installed = usr.join("bin/gyrus");
    fs::copy(program, &installed).with_context(|| format!("cannot read {}", program.display()))?;
    run_in(root, Command::new("strip").arg(&installed))?;
    for name in DOCUMENTS {
        fs::copy(root.join(name), documents.join(name))?;
    }
    let parts = serde_json::to_string_pretty(&bill_of_materials()?)?;
    fs::write(documents.join("sbom.cdx.json"), parts)?;
    // A state folder of its own: nothing of the person who packs is read.
    let home = tempfile::tempdir()?;
    let gyrus = || {
        let mut gyrus = Command::new(&installed);
        gyrus
            .env("GYRUS_HOME", home.path())
            .current_dir(home.path());
        gyrus
    };
    for (shell, path) in SHELLS {
        let script = said(gyrus().args(["completions", shell]))?;
        let path = usr.join(path);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        fs::write(path, script)?;
    }
    said(gyrus().arg("manual").arg(usr.join("share/man/man1")))?;
    Ok(())
}

/// Returns the crates that the program is made of, as a bill of materials of
/// [CycloneDX 1.6](https://cyclonedx.org/docs/1.6/json/).
fn bill_of_materials() -> anyhow::Result<Value> {
    let mut tree = repository::cargo(&["tree", "--offline", "--locked", "--package", "gyrus"])?;
    tree.args([
        "--edges", "normal", "--prefix", "none", "--format", "{p}|{l}",
    ]);
    let said = said(&mut tree)?;
    let mut components = BTreeMap::new();
    for line in said.lines() {
        let (package, licence) = line.split_once('|').context("a line without a licence")?;
        let mut words = package.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            bail!("`cargo tree` printed a line that names no package: {line}");
        };
        let version = version.trim_start_matches('v');
        let licence = licence.trim_end_matches(" (*)").replace('/', " OR ");
        let component = json!({
            "type": "library",
            "name": name,
            "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
            "licenses": [{"expression": licence}],
        });
        components.insert((name.to_owned(), version.to_owned()), component);
    }
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": components.into_values().collect::<Vec<_>>(),
    }))
}

/// Packs the tree so that it can be unpacked anywhere: `bin` and `share` in one folder.
fn archive(release: &Release, tree: &Path, folder: &Path) -> anyhow::Result<()> {
    let name = release.name();
    let renamed = format!("--transform=s,^usr,{name},");
    let more = [&*renamed, "--use-compress-program=gzip -9n"];
    pack_tree(release, tree, &folder.join(format!("{name}.tar.gz")), &more)
}

fn debian_package(release: &Release, tree: &Path, folder: &Path) -> anyhow::Result<()> {
    let program = tree.join("usr/bin/gyrus");
    let control = format!(
        "Package: gyrus\nVersion: {}\nArchitecture: {}\nMaintainer: The gyrus authors <gyrus@localhost>\n\
         Section: utils\nPriority: optional\nDepends: libc6 (>= {}), libgcc-s1, bash, ca-certificates\n\
         Recommends: git\nSuggests: chromium\nDescription: An agent runtime you can trust with a computer\n \
         It reaches goals with any model; every step is recorded, judged by a gate, and can be undone.\n",
        release.version,
        release.architecture,
        libc_version(&program)?,
    );
    fs::create_dir_all(tree.join("DEBIAN"))?;
    fs::write(tree.join("DEBIAN/control"), control)?;
    run_in(tree, Command::new("chmod").args(["-R", "u=rwX,go=rX", "."]))?;
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "-Zxz", "--build"])
        .arg(tree);
    pack.arg(folder.join(format!(
        "gyrus_{}_{}.deb",
        release.version, release.architecture
    )));
    pack.env("SOURCE_DATE_EPOCH", &release.time);
    said(&mut pack)?;
    Ok(())
}

/// Returns the oldest version of the C library that has every symbol of the program.
fn libc_version(program: &Path) -> anyhow::Result<String> {
    let symbols = said(Command::new("objdump").arg("--dynamic-syms").arg(program))?;
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let digits = rest
            .split(|c: char| c != '.' && !c.is_ascii_digit())
            .next()?;
        let (major, minor) = digits.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    let (major, minor) = versions
        .max()
        .context("the program names no version of glibc")?;
    Ok(format!("{major}.{minor}"))
}
