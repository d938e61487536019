//! Names of variables: which change what programs do, and where a line mentions one.

use super::words::name_length;

/// Assigning these changes which programs run, or what they run.
const DANGEROUS: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "CDPATH",
    "GLOBIGNORE",
    "HOME",
    "SHELL",
    "PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "LESSOPEN",
    "LESSCLOSE",
    "LESS",
    "LESSKEY",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "NODE_PATH",
    "CC",
    "CXX",
    "LD",
    "AR",
    "MAKEFLAGS",
    "MAKEFILES",
    "GNUMAKEFLAGS",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTUP_TOOLCHAIN",
    "RUSTUP_HOME",
    "CARGO_HOME",
    "GOFLAGS",
    "GOTOOLCHAIN",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "TAR_OPTIONS",
    "GREP_OPTIONS",
    "GZIP",
    "ZIPOPT",
    "UNZIP",
    "RIPGREP_CONFIG_PATH",
    "TERMINFO",
    "TERMCAP",
    "INPUTRC",
    "HISTFILE",
    "LOCPATH",
    "NLSPATH",
    "GCONV_PATH",
    "MANPATH",
    "AWKPATH",
    "AWKLIBPATH",
    "POSIXLY_CORRECT",
    "TMPDIR",
    "MAIL",
    "MAILPATH",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "DOCKER_HOST",
    "KUBECONFIG",
    "OPENER",
];

/// So do those that begin like this.
const DANGEROUS_PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "GIT_",
    "PYTHON",
    "PERL",
    "BASH",
    "NPM_CONFIG",
    "npm_config",
    "CARGO_TARGET_",
    "CARGO_BUILD_",
    "GYRUS",
    "SSH_",
    "MALLOC_",
    "GCONV",
    "LUA",
    "RUBY",
    "NODE_",
];

/// Those of the above that are harmless, and others that programs merely print by.
const HARMLESS: &[&str] = &[
    "RUST_LOG",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "CI",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLUMNS",
    "LINES",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "NODE_ENV",
    "DEBUG",
    "VERBOSE",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONHASHSEED",
    "DEBIAN_FRONTEND",
    "GREP_COLORS",
    "LS_COLORS",
    "JQ_COLORS",
    "TIMEFORMAT",
    "BLOCK_SIZE",
    "SOURCE_DATE_EPOCH",
];

/// Those that the shell itself fills, or gives a meaning.
const THE_SHELLS: &[&str] = &[
    "_",
    "REPLY",
    "OPTARG",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "PIPESTATUS",
];

/// What assigning a variable for a program means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// At most how something is printed.
    Harmless,
    /// It may change which code runs.
    Dangerous,
    /// Nobody knows.
    Unknown,
}

/// What it means that a program finds this variable.
pub(super) fn effect(name: &str) -> Effect {
    if HARMLESS.contains(&name) || name.starts_with("LC_") {
        Effect::Harmless
    } else if name == "CARGO_TARGET_DIR" {
        Effect::Unknown
    } else if is_dangerous(name) {
        Effect::Dangerous
    } else {
        Effect::Unknown
    }
}

/// Whether merely assigning it may change which code runs.
pub(super) fn is_dangerous(name: &str) -> bool {
    !HARMLESS.contains(&name)
        && (DANGEROUS.contains(&name)
            || DANGEROUS_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix)))
}

/// Whether the shell gives it values of its own.
pub(super) fn is_the_shells(name: &str) -> bool {
    THE_SHELLS.contains(&name) || is_dangerous(name)
}

/// Whether this is a variable's name and nothing else.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && name_length(text) == text.len()
}

/// How often the line names the variable other than to use its value.
pub(super) fn mentions(line: &str, name: &str) -> usize {
    bare_mentions(line, name).count()
}

/// Where the line names the variable other than to use its value, or as an option or a file.
pub(super) fn bare_mentions<'a>(line: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(name)
        .map(|(at, _)| at)
        .filter(move |at| {
            let (before, after) = (&line[..*at], &line[*at + name.len()..]);
            if before.ends_with(word) || after.starts_with(word) {
                return false;
            }
            let option = [" -", "\t-", " --", "\n-"]
                .iter()
                .any(|dash| before.ends_with(dash));
            let used = before.ends_with('$') || before.ends_with("${") || before.ends_with("${#");
            // `${name:=value}` assigns.
            let assigns =
                after.starts_with(":=") || before.ends_with("${") && after.starts_with('=');
            let path = before.ends_with(['.', '/']) || after.starts_with('/');
            assigns || !(option || used || path)
        })
}
