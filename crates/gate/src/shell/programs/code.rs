//! Programs that run code: builds, tests, interpreters, package managers.

use std::path::Path;

use gyrus_contract::Does;

use super::Call;
use crate::shell::{reader::Reader, words::Word};

/// They run what lies in the workspace, or what they are given.
const RUNS: &str = "make gmake cmake ctest cpack ninja meson bazel buck just task gcc g++ cc c++ clang \
    clang++ cpp ld as rustc rustdoc rustfmt clippy-driver tsc tsx ts-node eslint prettier biome black \
    ruff flake8 pylint isort mypy pyright pytest py.test tox nox unittest coverage python python2 \
    python3 ipython node nodejs deno bun ruby irb rake perl php lua luajit Rscript R julia java javac \
    jar kotlin kotlinc scala mvn mvnw gradle gradlew ant sbt lein dotnet msbuild go gofmt \
    golangci-lint cargo rustup npm npx pnpm pnpx yarn jest vitest mocha ava webpack vite rollup \
    esbuild parcel next nuxt ng vue pip pip3 pipx poetry pipenv uv uvx pdm hatch conda mamba bundle \
    bundler gem composer phpunit mix elixir iex rebar3 erl stack cabal ghc ghci runghc zig nim swift \
    swiftc xcodebuild dart flutter pre-commit valgrind sqlite3 duckdb crystal ocaml dune opam racket sbcl clojure dc \
    protoc swagger openapi-generator pandoc pdflatex latexmk latex xelatex convert magick ffmpeg \
    ffprobe qemu-img jupyter streamlit flask django-admin uvicorn gunicorn celery \
    alembic manage.py rails hugo jekyll mkdocs sphinx-build doxygen shellcheck shfmt hadolint \
    markdownlint yamllint ansible-lint pyenv nvm rbenv asdf mise volta wasm-pack trunk yq \
    objdump objcopy strip patchelf ccache sccache autoconf automake configure libtool pkg-config";

/// They can run any command, and that is not what they are looked at for.
const RUNS_ANYTHING: &str = "script gdb lldb strace ltrace perf watch entr parallel expect tclsh wish \
    osascript ed ex vi vim nvim nano emacs emacsclient man info top htop run-parts m4 xvfb-run \
    direnv busybox toybox xdg-open";

/// Words that make a package manager fetch: program, subcommand.
const GETS: &[(&str, &[&str])] = &[
    (
        "npm pnpm",
        &[
            "install", "i", "ci", "add", "update", "up", "upgrade", "exec", "create", "init",
            "link", "dlx", "audit", "view", "info", "outdated", "search", "x",
        ],
    ),
    (
        "yarn",
        &[
            "install", "add", "upgrade", "up", "create", "dlx", "global", "",
        ],
    ),
    ("bun", &["install", "add", "update", "x", "create", "i"]),
    (
        "pip pip3 pipx conda mamba uv pdm hatch",
        &[
            "install", "download", "wheel", "add", "sync", "pip", "tool", "run", "update",
            "upgrade", "lock", "inject", "create", "python",
        ],
    ),
    (
        "poetry pipenv",
        &["install", "add", "update", "lock", "sync"],
    ),
    (
        "cargo",
        &[
            "install",
            "add",
            "fetch",
            "update",
            "search",
            "binstall",
            "generate-lockfile",
            "vendor",
            "info",
        ],
    ),
    (
        "rustup",
        &["install", "update", "toolchain", "target", "component"],
    ),
    (
        "pyenv nvm rbenv asdf mise volta",
        &[
            "install", "i", "update", "upgrade", "use", "exec", "x", "plugin", "fetch", "pin",
        ],
    ),
    ("go", &["get", "install", "mod"]),
    ("gem", &["install", "update", "fetch"]),
    ("bundle bundler", &["install", "update", "add", ""]),
    (
        "composer",
        &["install", "update", "require", "create-project"],
    ),
    ("dotnet", &["restore", "add", "tool"]),
    ("mix", &["deps.get", "deps.update"]),
    ("deno", &["install", "add", "cache"]),
    (
        "opam cabal stack dart flutter",
        &["install", "update", "pub", "get"],
    ),
    ("uvx", &[]),
];

/// Words that make them publish.
const PUBLISHES: &[(&str, &[&str])] = &[
    (
        "npm pnpm yarn bun",
        &[
            "publish",
            "unpublish",
            "deprecate",
            "dist-tag",
            "owner",
            "access",
            "token",
            "login",
            "adduser",
        ],
    ),
    ("cargo", &["publish", "yank", "owner", "login"]),
    ("poetry uv hatch pdm", &["publish"]),
    ("gem", &["push", "yank"]),
    ("mvn mvnw", &["deploy"]),
    ("dotnet", &["nuget"]),
    ("dart flutter", &["publish"]),
    ("mix", &["hex.publish"]),
];

/// Programs that only say their version when asked so, with the words that ask.
const VERSIONS: &str = "cargo rustc rustup rustfmt rustdoc node nodejs python python2 python3 go \
    gcc g++ cc c++ clang clang++ make gmake cmake ninja ruby perl php lua deno bun ghc zig \
    dotnet npm npx yarn pnpm pip pip3 pytest tsc swift julia R Rscript \
    sqlite3 ffmpeg vim man ld as gdb strace valgrind uv poetry";

/// Files that make a version manager choose, or run, another program of the same name; for the
/// programs that begin like this.
const PINS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            ".tool-versions",
            "mise.toml",
            ".mise.toml",
            ".config/mise.toml",
            ".mise",
            "mise",
        ],
    ),
    ("cargo rust", &["rust-toolchain", "rust-toolchain.toml"]),
    ("go", &["go.mod", "go.work"]),
    ("python pip", &[".python-version", "pyvenv.cfg"]),
    ("node", &[".node-version"]),
    ("ruby", &[".ruby-version"]),
    ("java", &[".java-version", ".sdkmanrc"]),
    ("perl", &[".perl-version"]),
    ("swift", &[".swift-version"]),
];

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    let runs_anything = RUNS_ANYTHING
        .split_ascii_whitespace()
        .any(|name| name == call.name);
    if runs_anything && !says_its_version(reader, call) {
        reader.hides(call.part, "it can run any command");
    }
    if runs_anything {
        return true;
    }
    if !RUNS
        .split_ascii_whitespace()
        .any(|name| name == call.name || versioned(call.name, name))
    {
        return false;
    }
    if says_its_version(reader, call) {
        return true;
    }
    let words = || {
        call.args
            .iter()
            .filter(|word| !word.prefix().starts_with(['-', '+']))
    };
    let subcommand = words()
        .next()
        .map_or(String::new(), |word| word.literal().unwrap_or_default());
    let listed = |list: &[(&str, &[&str])]| {
        list.iter().any(|(names, verbs)| {
            names.split(' ').any(|name| name == call.name)
                && (verbs.is_empty() || verbs.contains(&subcommand.as_str()))
        })
    };
    if is_given_commands(call) {
        reader.hides(call.part, "it is given commands to run");
    }
    reader.runs_code(
        call.part,
        "it runs code of the workspace, or code that it is given",
    );
    let bare_init = subcommand == "init" && words().count() == 1;
    let gets = listed(GETS) && !bare_init || gets_otherwise(reader, call);
    if gets && !stays_offline(call) {
        reader.fact(Does::GetsPackages, call.part, "it gets packages");
    }
    let pub_publish = call.name == "dart" && call.args.len() > 1;
    if listed(PUBLISHES) || pub_publish && listed(&[("dart flutter", &["pub"])]) {
        reader.fact(
            Does::Connects { hosts: Vec::new() },
            call.part,
            "it connects to a registry",
        );
        reader.fact(
            Does::UsesCredentials,
            call.part,
            "it acts with a person's account",
        );
        reader.fact(Does::Publishes, call.part, "it changes what others see");
    }
    stdin(reader, call);
    secrets(reader, call);
    settings(reader, call, &subcommand);
    true
}

/// What npm and its kin show of their settings.
fn settings(reader: &mut Reader<'_>, call: &Call<'_>, subcommand: &str) {
    let npm = matches!(call.name, "npm" | "pnpm" | "yarn");
    if npm
        && matches!(subcommand, "config" | "c" | "get" | "set" | "whoami")
        && !shows_plain_settings(call)
    {
        reader.fact(Does::UsesCredentials, call.part, "its settings hold tokens");
    }
}

/// Told to use what is there already. Should it not obey, it runs without a network.
fn stays_offline(call: &Call<'_>) -> bool {
    call.args.iter().any(|word| {
        matches!(
            word.literal().as_deref(),
            Some("--offline" | "--no-index" | "--frozen")
        )
    })
}

/// `npm config list` masks tokens, and a setting with a plain name is none.
fn shows_plain_settings(call: &Call<'_>) -> bool {
    let words: Option<Vec<String>> = call.args.iter().map(Word::literal).collect();
    let words = words.unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["config" | "c", "list" | "ls"] => true,
        ["config" | "c", "get", key] => {
            let plain = key.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            let secret = ["auth", "token", "pass", "key", "cert", "otp"];
            plain && !secret.iter().any(|part| key.contains(part))
        }
        _ => false,
    }
}

/// Arguments that are files with secrets, whatever the program does with them.
pub(super) fn secrets(reader: &mut Reader<'_>, call: &Call<'_>) {
    for word in call.args {
        let text = word.prefix();
        let value = text
            .split_once('=')
            .map_or(text.as_str(), |(_, value)| value);
        reader.names_secret(value, call.part);
    }
}

/// `python3.12`, `gcc-13`, `clang++-18`.
fn versioned(name: &str, plain: &str) -> bool {
    let rest = name.strip_prefix(plain).unwrap_or_default();
    !rest.is_empty()
        && rest
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
        && rest.contains(|c: char| c.is_ascii_digit())
}

/// Whether it is asked for its version and nothing in the workspace can answer in its place.
fn says_its_version(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    let [only] = call.args else {
        return false;
    };
    let asked = match only.literal().as_deref() {
        Some("--version") => true,
        Some("-V") => matches!(
            call.name,
            "cargo" | "rustc" | "python" | "python3" | "rustup"
        ),
        Some("-v") => matches!(call.name, "node" | "npm" | "perl" | "php" | "ruby" | "yarn"),
        Some("version") => call.name == "go",
        _ => false,
    };
    if !asked
        || !VERSIONS
            .split_ascii_whitespace()
            .any(|name| name == call.name)
    {
        return false;
    }
    let Some(folder) = reader.folder.clone() else {
        return false;
    };
    if writes_when_asked(call.name) || pinned(call.name, &folder) {
        return false;
    }
    true
}

/// They keep a log, or a cache, even of being asked.
fn writes_when_asked(name: &str) -> bool {
    matches!(
        name,
        "npm"
            | "npx"
            | "gradle"
            | "dotnet"
            | "yarn"
            | "pnpm"
            | "bun"
            | "deno"
            | "poetry"
            | "uv"
            | "mvn"
            | "pytest"
            | "tsc"
    )
}

fn pinned(name: &str, folder: &Path) -> bool {
    let mine = PINS
        .iter()
        .filter(|(names, _)| names.split(' ').any(|start| name.starts_with(start)));
    let mut files = mine.flat_map(|(_, files)| *files);
    files.any(|file| {
        folder
            .ancestors()
            .any(|above| std::fs::symlink_metadata(above.join(file)).is_ok())
    })
}

/// `python -m pip install`, `npx` of what is not installed, bare `yarn`.
fn gets_otherwise(reader: &Reader<'_>, call: &Call<'_>) -> bool {
    let is = |word: &Word, text: &str| word.literal().as_deref() == Some(text);
    let module = call
        .args
        .windows(2)
        .position(|pair| is(&pair[0], "-m") && is(&pair[1], "pip"));
    if let (Some(module), true) = (module, call.name.starts_with("python")) {
        let asks = [
            "--version",
            "list",
            "show",
            "freeze",
            "check",
            "help",
            "inspect",
        ];
        let first = call.args.get(module + 2).and_then(Word::literal);
        return !first.is_some_and(|word| asks.contains(&&*word));
    }
    if !matches!(call.name, "npx" | "pnpx") {
        return false;
    }
    let program = call
        .args
        .iter()
        .find(|word| !word.prefix().starts_with('-'));
    let local = program
        .and_then(Word::literal)
        .zip(reader.folder.as_ref())
        .is_some_and(|(name, folder)| {
            !name.contains(['/', '@'])
                && folder
                    .ancestors()
                    .any(|above| above.join("node_modules/.bin").join(&name).exists())
        });
    !local
}

/// An interpreter without a script reads its program from what comes in.
fn stdin(reader: &mut Reader<'_>, call: &Call<'_>) {
    let interpreter = [
        "python", "node", "ruby", "perl", "php", "lua", "Rscript", "deno", "bun",
    ]
    .iter()
    .any(|name| call.name == *name || versioned(call.name, name));
    let from_outside = call
        .args
        .iter()
        .all(|word| word.literal().as_deref() == Some("-"));
    if interpreter && from_outside && !reader.given_text {
        reader.hides(call.part, "what it runs is known only when it runs");
    }
}

/// Whether a program that usually runs what lies in files is given something else to run.
fn is_given_commands(call: &Call<'_>) -> bool {
    let mut literals = call.args.iter().map(|word| word.literal());
    match call.name {
        // Commands of its own begin with a dot, and some of them are a shell's.
        "sqlite3" | "duckdb" => literals.any(|word| {
            word.is_none_or(|word| {
                word.starts_with('.') || word.contains("\n.") || word.starts_with("-cmd")
            })
        }),
        "make" | "gmake" => {
            let given = |word: String| ["-", "-f-"].contains(&&*word) || word.starts_with("--ev");
            literals.any(|word| word.is_none_or(given))
                || call
                    .args
                    .iter()
                    .any(|word| word.prefix().starts_with("/dev/"))
        }
        "gcc" | "g++" | "cc" | "c++" => literals.any(|word| {
            word.is_none_or(|word| word.starts_with("-wrapper") || word.starts_with("-B"))
        }),
        _ => false,
    }
}
