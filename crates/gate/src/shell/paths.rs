//! Paths, and what is special about some.

use std::path::{Component, Path, PathBuf};

/// Folders whose content anybody may read.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/opt",
    "/etc",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/version",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/filesystems",
    "/proc/mounts",
    "/sys/class",
    "/sys/devices/system",
    "/nix/store",
    "/snap",
];

/// Exceptions below those folders that not everybody may read.
const NOT_FOR_ALL: &[&str] = &[
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/ssl/private",
    "/run/secrets",
    "/var/run/secrets",
    "/run/credentials",
];

/// Below the home folder, beside the places that the sandbox hides: what it shows because tools
/// need it, and what lies elsewhere on other systems.
const MORE_AT_HOME: &[&str] = &[
    ".npmrc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d",
    ".gem",
    ".gradle",
    "Library/Keychains",
];

/// Files and folders below the home with keys, passwords and tokens.
fn secrets_at_home() -> impl Iterator<Item = PathBuf> {
    let hidden = crate::SECRETS.lines().filter_map(|line| {
        let below_configuration = line.strip_prefix("CONFIG/");
        let below_configuration = below_configuration.map(|name| Path::new(".config").join(name));
        below_configuration.or_else(|| line.strip_prefix("~/").map(PathBuf::from))
    });
    hidden.chain(MORE_AT_HOME.iter().map(PathBuf::from))
}

/// Names of files that contain secrets in any folder.
const SECRET_NAMES: &[&str] = &[
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    ".pgpass",
    ".htpasswd",
    "shadow",
    "gshadow",
    "credentials.json",
    ".vault-token",
];

/// Whether anybody may read the path and it is the system's.
pub(super) fn is_system(path: &Path) -> bool {
    let path = normal(path);
    let below = |list: &[&str]| list.iter().any(|folder| path.starts_with(folder));
    (below(SYSTEM) && !below(NOT_FOR_ALL)) || is_null(&path)
}

/// Whether the file is known to contain secrets.
pub(super) fn is_secret(path: &Path, home: Option<&Path>) -> bool {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase());
    let name = name.unwrap_or_default();
    let env = name == ".env" || name.starts_with(".env.");
    let example = [".example", ".sample", ".template", ".dist"];
    if env && !example.iter().any(|end| name.ends_with(end)) {
        return true;
    }
    let key = name.ends_with(".pem") || name.ends_with(".p12") || name.ends_with(".kdbx");
    if key || SECRET_NAMES.contains(&name.as_str()) {
        return true;
    }
    let process = path.starts_with("/proc")
        && ["environ", "mem", "maps", "cmdline"].contains(&name.as_str())
        && path.components().count() > 3;
    let below_home = home.and_then(|home| path.strip_prefix(home).ok());
    let at_home =
        below_home.is_some_and(|below| secrets_at_home().any(|secret| below.starts_with(secret)));
    let hidden = path
        .components()
        .any(|part| matches!(part.as_os_str().to_str(), Some(".ssh" | ".aws" | ".gnupg")));
    process || at_home || hidden || NOT_FOR_ALL.iter().any(|secret| path.starts_with(secret))
}

/// Whether a path is a device that discards what is written and contains nothing to read.
pub(super) fn is_null(path: &Path) -> bool {
    const NULL: &[&str] = &[
        "/dev/null",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/fd/0",
        "/dev/fd/1",
        "/dev/fd/2",
        "/dev/zero",
        "/dev/urandom",
        "/dev/random",
    ];
    NULL.iter().any(|null| path == Path::new(null))
}

/// The path without `.` and `..`, as text.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Returns the same path without `..`, if none of them follows a link.
pub(super) fn without_dots(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if plain.is_symlink() {
                    return None;
                }
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    Some(plain)
}
