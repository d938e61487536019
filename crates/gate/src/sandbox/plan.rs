//! The containment of a run's commands, if nobody asks for another one.
//!
//! Tools have to work: toolchains and the person's identity for git can be read, and caches of
//! packages look writable. Secrets are hidden one by one, by the places where programs are known
//! to keep them; a secret that lies elsewhere can be read, and without a network not be sent.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::SECRETS;
use gyrus_contract::{Containment, Layer, Network, ResourceLimits};

/// The folders and settings of a run that its containment depends on.
#[derive(Debug, Clone, Copy)]
pub struct SandboxSurroundings<'a> {
    /// The person's home.
    pub home: &'a Path,
    /// gyrus's own folders of state, configuration and caches. Nothing of them can be seen.
    pub own: &'a [PathBuf],
    /// The folder in which the run works.
    pub workspace: &'a Path,
    /// An existing folder of the run that becomes `/tmp`. It may lie in one of `own`.
    pub temporary: &'a Path,
    /// A folder of the run's that takes the changes of shared caches. It may lie in one of `own`.
    /// No two commands may use it at once.
    pub changes: &'a Path,
    /// gyrus's environment, by which people move folders elsewhere.
    pub environment: &'a BTreeMap<String, String>,
    /// Network access of the commands.
    pub network: Network,
    /// Limits on the resources of the commands.
    pub limits: ResourceLimits,
}

/// The error of a workspace that no sandbox fits.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A folder does not exist, or cannot be read.
    #[error("`{}` cannot be worked in: {source}", path.display())]
    Folder {
        /// The path of the folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    #[error(
        "the workspace `{}` lies in `{}`, which commands must not see; choose another folder",
        workspace.display(), hidden.display()
    )]
    Hidden {
        workspace: PathBuf,
        /// The hidden folder that contains the workspace.
        hidden: PathBuf,
    },
    /// The workspace contains more than it may.
    #[error(
        "the workspace `{}` holds `{}`, which commands must not change; choose a folder below it",
        workspace.display(), held.display()
    )]
    TooWide {
        workspace: PathBuf,
        /// The folder that the workspace contains.
        held: PathBuf,
    },
}

/// Needed settings, which are hidden if a token stands in them.
const SETTINGS: &[&str] = &[
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".bunfig.toml",
    ".condarc",
];

/// Names of settings in [`SETTINGS`] whose values are tokens.
const TOKEN_NAMES: &[&str] = &["_auth", "_password", "AuthToken", "AuthIdent", "token"];

/// Download caches of package managers, below the home.
const CACHES: &[&str] = &[
    ".npm",
    ".yarn",
    ".bun/install/cache",
    ".local/share/pnpm",
    ".gradle",
    ".m2/repository",
    ".ivy2",
    ".sbt",
    ".nuget/packages",
    ".pub-cache",
    ".cabal",
    ".stack",
    ".composer/cache",
];

/// Package managers' folders below the home, the variables that name others, and the name below the
/// temporary folder that stands in for a missing one.
const MOVABLE: &[(&str, &str, &str)] = &[
    (".cache", "XDG_CACHE_HOME", "cache"),
    (".cargo", "CARGO_HOME", "cargo"),
    (".gradle", "GRADLE_USER_HOME", "gradle"),
    (".npm", "npm_config_cache", "npm"),
    (".nuget/packages", "NUGET_PACKAGES", "nuget"),
    ("go", "GOPATH", "go"),
];

/// Plans the containment of a run's commands: the workspace and a private `/tmp` are writable,
/// caches of packages look so, secrets are hidden, all else can be read.
pub fn plan(around: &SandboxSurroundings<'_>) -> Result<Containment, PlanError> {
    let workspace = real(around.workspace)?;
    let temporary = real(around.temporary)?;
    // Nothing below may depend on whether the home is named by a link.
    let home = fs::canonicalize(around.home).unwrap_or_else(|_| around.home.to_owned());
    let hidden = hidden(around, &home);
    if let Some(hidden) = hidden.iter().find(|path| workspace.starts_with(path)) {
        let hidden = hidden.clone();
        return Err(PlanError::Hidden { workspace, hidden });
    }
    let own = around.own.iter().map(|path| resolved(path));
    if let Some(held) = own
        .chain([home.clone()])
        .find(|path| path.starts_with(&workspace))
    {
        return Err(PlanError::TooWide { workspace, held });
    }
    let changes = resolved(around.changes);
    let layered = caches(around, &home)
        .into_iter()
        .filter(|cache| cache.is_dir() && !cache.starts_with(&workspace))
        // No folder can be a layer of what holds it; caches do not hold each other either.
        .filter(|cache| !changes.starts_with(cache))
        .map(|lower| layer(around.changes, lower))
        .collect();
    Ok(Containment {
        writable: vec![workspace],
        read_only: Vec::new(),
        temporary,
        hidden,
        layered,
        binds: Vec::new(),
        moved: moved(around, &home),
        network: around.network,
        forwarded: Vec::new(),
        asked: Vec::new(),
        serves: false,
        sockets: Vec::new(),
        limits: around.limits,
    })
}

fn real(path: &Path) -> Result<PathBuf, PlanError> {
    let failed = |source| PlanError::Folder {
        path: path.to_owned(),
        source,
    };
    fs::canonicalize(path).map_err(failed)
}

/// The path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns everything to hide; what is not there yet may come while the run goes on.
fn hidden(around: &SandboxSurroundings<'_>, home: &Path) -> Vec<PathBuf> {
    let folder = |variable, usual| folder(around, variable, &home.join(usual));
    let (cache, cargo) = (
        folder("XDG_CACHE_HOME", ".cache"),
        folder("CARGO_HOME", ".cargo"),
    );
    let configuration = folder("XDG_CONFIG_HOME", ".config");
    let mut hidden: Vec<PathBuf> = around.own.to_vec();
    for line in SECRETS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("~/") {
            hidden.push(home.join(name));
        } else if let Some(name) = line.strip_prefix("CONFIG/") {
            hidden.push(configuration.join(name));
        } else if let Some(name) = line.strip_prefix("CACHE/") {
            hidden.push(cache.join(name));
        } else if let Some(variable) = line.strip_prefix('$') {
            // Some hold a list.
            let named = around.environment.get(variable).into_iter();
            let named = named.flat_map(|value| value.split(':')).map(PathBuf::from);
            hidden.extend(named.filter(|path| path.is_absolute() && !home.starts_with(path)));
        } else if line.starts_with('/') {
            hidden.push(PathBuf::from(line));
        }
    }
    hidden.extend(["credentials", "credentials.toml"].map(|name| cargo.join(name)));
    let settings = SETTINGS.iter().map(|name| home.join(name));
    hidden.extend(settings.filter(|path| holds_token(path)));
    let mut hidden: Vec<PathBuf> = hidden.iter().map(|path| resolved(path)).collect();
    hidden.sort();
    hidden.dedup();
    hidden
}

/// Whether a file of settings holds a token; one that cannot be read as text may.
fn holds_token(settings: &Path) -> bool {
    match gyrus_process::read_regular_text(settings) {
        Ok(text) => TOKEN_NAMES.iter().any(|name| text.contains(name)),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Returns a folder that a variable may have moved.
fn folder(around: &SandboxSurroundings<'_>, variable: &str, usual: &Path) -> PathBuf {
    let moved = around.environment.get(variable).map(PathBuf::from);
    let moved = moved.filter(|path| path.is_absolute());
    resolved(&moved.unwrap_or_else(|| usual.to_owned()))
}

fn caches(around: &SandboxSurroundings<'_>, home: &Path) -> Vec<PathBuf> {
    let folder = |variable, usual: &Path| folder(around, variable, usual);
    let cargo = folder("CARGO_HOME", &home.join(".cargo"));
    let go = folder("GOPATH", &home.join("go"));
    let mut caches: Vec<PathBuf> = CACHES
        .iter()
        .map(|name| resolved(&home.join(name)))
        .collect();
    caches.extend([
        folder("XDG_CACHE_HOME", &home.join(".cache")),
        folder("PIP_CACHE_DIR", &home.join(".cache/pip")),
        folder("npm_config_cache", &home.join(".npm")),
        folder("GRADLE_USER_HOME", &home.join(".gradle")),
        folder("GOMODCACHE", &go.join("pkg")),
        folder("GOCACHE", &home.join(".cache/go-build")),
        cargo,
        go,
    ]);
    caches.sort();
    // One within another goes with it.
    caches.dedup_by(|inner, outer| inner.starts_with(&*outer));
    caches
}

/// Returns the variables that move missing folders, which can neither be layered nor created in a
/// read-only home.
fn moved(around: &SandboxSurroundings<'_>, home: &Path) -> BTreeMap<String, String> {
    let missing = MOVABLE.iter().filter(|(usual, variable, _)| {
        !around.environment.contains_key(*variable) && !home.join(usual).is_dir()
    });
    missing
        .map(|(_, variable, name)| ((*variable).to_owned(), (*name).to_owned()))
        .collect()
}

/// Returns a layer with a separate folder for its changes, named after the path.
fn layer(changes: &Path, lower: PathBuf) -> Layer {
    let name = lower
        .to_string_lossy()
        .replace('%', "%25")
        .replace('/', "%2F");
    let folder = changes.join(name);
    Layer {
        upper: folder.join("changes"),
        work: folder.join("work"),
        lower,
        required: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ResourceLimits = ResourceLimits {
        processes: 100,
        memory_bytes: 1 << 30,
        cpu_seconds: 60,
        file_bytes: 1 << 30,
    };

    /// Plans the sandbox of the folder `workspace` in a home that contains it and `folders`.
    fn planned(
        folders: &[&str],
        workspace: &str,
        variables: &[(&str, &str)],
    ) -> Result<Containment, String> {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        for folder in folders.iter().chain(&["work", "state/run/tmp"]) {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let environment = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), home.join(value).display().to_string()))
            .collect();
        let shorten = |path: &Path| {
            path.strip_prefix(&home)
                .map_or(path.to_owned(), Path::to_owned)
        };
        let planned = plan(&SandboxSurroundings {
            home: &home,
            own: &[home.join("state")],
            workspace: &home.join(workspace),
            temporary: &home.join("state/run/tmp"),
            changes: &home.join("state/run/changes"),
            environment: &environment,
            network: Network::None,
            limits: LIMITS,
        });
        let mut planned =
            planned.map_err(|error| error.to_string().replace(home.to_str().unwrap(), "~"))?;
        for path in planned.hidden.iter_mut().chain(&mut planned.writable) {
            *path = shorten(path);
        }
        for layer in &mut planned.layered {
            layer.lower = shorten(&layer.lower);
        }
        Ok(planned)
    }

    #[test]
    fn secrets_are_hidden_and_tools_are_not() {
        let plan = planned(
            &[".cargo", ".npm", "elsewhere/git", ".ssh"],
            "work",
            &[("GNUPGHOME", "keys"), ("CARGO_HOME", "elsewhere")],
        )
        .unwrap();
        assert_eq!(plan.writable, [PathBuf::from("work")]);
        for hidden in [
            ".ssh",
            ".config/gh",
            ".config/git/credentials",
            "keys",
            "state",
            "elsewhere/credentials.toml",
            "/etc/shadow",
        ] {
            assert!(plan.hidden.contains(&hidden.into()), "{hidden}");
        }
        for seen in [
            ".cargo/bin",
            ".rustup",
            ".nvm",
            ".pyenv",
            ".local/bin",
            ".gitconfig",
            ".config/git/config",
            ".npmrc",
            "work",
            "elsewhere",
        ] {
            let holds = |hidden: &PathBuf| Path::new(seen).starts_with(hidden);
            assert!(!plan.hidden.iter().any(holds), "{seen}");
        }
        let lowers: Vec<_> = plan
            .layered
            .iter()
            .map(|layer| layer.lower.clone())
            .collect();
        assert_eq!(lowers, [".npm", "elsewhere"].map(PathBuf::from));
        let moved: Vec<_> = plan.moved.keys().map(String::as_str).collect();
        assert_eq!(
            moved,
            [
                "GOPATH",
                "GRADLE_USER_HOME",
                "NUGET_PACKAGES",
                "XDG_CACHE_HOME"
            ]
        );
    }

    #[test]
    fn workspaces_that_do_not_fit_are_refused() {
        for (workspace, error) in [
            (".ssh/project", "lies in `~/.ssh`"),
            ("state/project", "lies in `~/state`"),
            ("", "holds `~/state`"),
            ("missing", "cannot be worked in"),
        ] {
            let refused = planned(&[".ssh/project", "state/project"], workspace, &[]).unwrap_err();
            assert!(refused.contains(error), "{refused}");
        }
    }
}
