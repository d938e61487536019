//! Tries the API as others use it: clients that generators make from `/openapi.json` start and
//! follow a run, the libraries of `clients/` are packaged and do so, too, and schemathesis looks for
//! answers that the document does not name. The official SDK of the Agent Client Protocol plays an
//! editor.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::{programs::run_in, repository};

const PYTHON: [&str; 6] = [
    "agent-client-protocol==0.12.1",
    "openapi-python-client==0.29.1",
    "schemathesis==4.32.5",
    "datamodel-code-generator==0.89.0",
    "typing_extensions",
    "build",
];

const JAVASCRIPT: [&str; 4] = [
    "openapi-typescript@7",
    "openapi-fetch@0.14",
    "typescript@5",
    "@types/node@22",
];

/// Random requests for each endpoint.
const EXAMPLES: u32 = 60;

/// Properties of answers that schemathesis checks.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,\
                      ignored_auth,use_after_free,missing_required_header";

const TOKEN: &str = "a-secret-for-the-clients-0123456789";

const SCRIPT: &str = "[[reply]]\ntext = \"It is done.\"\n";

/// Installs what is missing below `target/clients`, and tries the API of a server of its own.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = repository::root()?;
    let at = root.join("target/clients");
    let packages = [&PYTHON[..], &JAVASCRIPT[..]].concat().join("\n");
    let stamp = at.join("packages");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(&packages) {
        install(&at)?;
        fs::write(&stamp, packages)?;
    }
    let build = ["build", "--quiet", "--package", "gyrus"];
    ensure!(
        repository::cargo(&build)?.status()?.success(),
        "gyrus cannot be built"
    );
    let gyrus = root.join("target/debug/gyrus");
    println!("an editor:");
    editor(&root, &at, &gyrus)?;
    let server = Server::start(&gyrus, &at.join("server"))?;
    let document = at.join("openapi.json");
    let mut fetch = Command::new("curl");
    fetch
        .args(["--silent", "--fail", "--output"])
        .arg(&document);
    run_in(&at, fetch.arg(format!("{}/openapi.json", server.address)))?;
    println!("a client of Python:");
    python(&root, &at, &server)?;
    println!("a client of TypeScript:");
    typescript(&root, &at, &server)?;
    println!("the library for Python:");
    python_library(&root, &at, &server)?;
    println!("the library for TypeScript:");
    typescript_library(&root, &at, &server)?;
    let mut schemathesis = Command::new(at.join("venv/bin/schemathesis"));
    schemathesis.args(["run", "openapi.json", "--url", &server.address]);
    schemathesis.args(["--header", &format!("Authorization: Bearer {TOKEN}")]);
    schemathesis.args(["--checks", CHECKS, "--rate-limit", "150/s"]);
    schemathesis.args(["--max-examples", &EXAMPLES.to_string()]);
    // A stream does not end, and an emergency stop would end the trial.
    schemathesis.args(["--exclude-path-regex", "stream$|/events$|^/api/stop$"]);
    run_in(&at, &mut schemathesis)
}

fn install(at: &Path) -> anyhow::Result<()> {
    println!("installing generators of clients in {}", at.display());
    fs::create_dir_all(at).with_context(|| format!("cannot make {}", at.display()))?;
    run_in(at, Command::new("python3").args(["-m", "venv", "venv"]))?;
    let mut pip = Command::new(at.join("venv/bin/pip"));
    run_in(at, pip.args(["install", "--quiet"]).args(PYTHON))?;
    fs::write(at.join("package.json"), "{\"private\": true}\n")?;
    let mut packages = Command::new("npm");
    packages.args(["install", "--silent", "--no-audit", "--no-fund"]);
    run_in(at, packages.args(JAVASCRIPT))
}

fn editor(root: &Path, at: &Path, gyrus: &Path) -> anyhow::Result<()> {
    let folder = at.join("editor");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut edit = Command::new(at.join("venv/bin/python"));
    edit.arg(root.join("tests/clients/editor.py"));
    run_in(at, edit.arg(gyrus).arg(&folder))
}

fn python(root: &Path, at: &Path, server: &Server) -> anyhow::Result<()> {
    let mut generate = Command::new(at.join("venv/bin/openapi-python-client"));
    generate.args(["generate", "--path", "openapi.json", "--meta", "none"]);
    generate.args(["--output-path", "client", "--overwrite"]);
    // What it says of formatters that are not installed is of no use here.
    run_in(at, generate.stdout(Stdio::null()))?;
    let mut follow = Command::new(at.join("venv/bin/python"));
    follow.arg(root.join("tests/clients/follow.py"));
    run_in(at, server.told(&mut follow).env("PYTHONPATH", at))
}

fn typescript(root: &Path, at: &Path, server: &Server) -> anyhow::Result<()> {
    let programs = at.join("node_modules/.bin");
    let mut generate = Command::new(programs.join("openapi-typescript"));
    generate.args(["openapi.json", "--output", "schema.d.ts"]);
    // What has a default need not be sent.
    generate.arg("--default-non-nullable=false");
    run_in(at, generate.stdout(Stdio::null()))?;
    fs::copy(root.join("tests/clients/follow.ts"), at.join("follow.ts"))?;
    let mut compile = Command::new(programs.join("tsc"));
    compile.args(["--strict", "--skipLibCheck", "--target", "es2022"]);
    compile.args(["--module", "commonjs", "follow.ts"]);
    run_in(at, &mut compile)?;
    let mut follow = Command::new("node");
    run_in(at, server.told(follow.arg("follow.js")))
}

/// Builds the package of Python with the types of the API, installs it, and has it used.
fn python_library(root: &Path, at: &Path, server: &Server) -> anyhow::Result<()> {
    let package = copied(&root.join("clients/python"), &at.join("python"))?;
    let mut generate = Command::new(at.join("venv/bin/datamodel-codegen"));
    generate.args(["--input", "../openapi.json", "--input-file-type", "openapi"]);
    generate.args([
        "--output-model-type",
        "typing.TypedDict",
        "--disable-timestamp",
    ]);
    generate.args(["--use-standard-collections", "--use-union-operator"]);
    generate.args(["--target-python-version", "3.11", "--formatters", "builtin"]);
    generate.args(["--output", "src/gyrus_client/_api.py"]);
    run_in(&package, &mut generate)?;
    let mut build = Command::new(at.join("venv/bin/python"));
    build.args(["-m", "build", "--wheel", "--outdir", "dist"]);
    run_in(&package, build.stdout(Stdio::null()))?;
    let mut install = Command::new(at.join("venv/bin/pip"));
    install.args(["install", "--quiet", "--force-reinstall", "--no-index"]);
    run_in(
        &package,
        install.args(["--find-links", "dist", "gyrus-client"]),
    )?;
    let mut use_it = Command::new(at.join("venv/bin/python"));
    use_it.arg(root.join("tests/clients/library.py"));
    run_in(at, server.told(&mut use_it))
}

/// The same for TypeScript.
fn typescript_library(root: &Path, at: &Path, server: &Server) -> anyhow::Result<()> {
    let package = copied(&root.join("clients/typescript"), &at.join("typescript"))?;
    let programs = at.join("node_modules/.bin");
    let whole = fs::read(at.join("openapi.json"))?;
    let source = fs::read_to_string(package.join("src/index.ts"))?;
    let part = part_of_api(serde_json::from_slice(&whole)?, &source)?;
    fs::write(package.join("part.json"), part.to_string())?;
    let mut generate = Command::new(programs.join("openapi-typescript"));
    generate.args(["part.json", "--output", "src/api.ts"]);
    generate.arg("--default-non-nullable=false");
    run_in(&package, generate.stdout(Stdio::null()))?;
    run_in(
        &package,
        Command::new(programs.join("tsc")).args(["-p", "."]),
    )?;
    ship(&package.join("dist"), &root.join("clients/typescript/dist"))?;
    let mut pack = Command::new("npm");
    run_in(
        &package,
        pack.args(["pack", "--silent"]).stdout(Stdio::null()),
    )?;
    let mut install = Command::new("npm");
    install.args([
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--no-save",
    ]);
    run_in(at, install.arg("./typescript/gyrus-client-0.1.0.tgz"))?;
    fs::copy(
        root.join("tests/clients/library.mjs"),
        at.join("library.mjs"),
    )?;
    let mut use_it = Command::new("node");
    run_in(at, server.told(use_it.arg("library.mjs")))
}

/// Returns the document of the API with nothing but the schemas that a source names as
/// `Schemas["NAME"]`, and those that they name.
fn part_of_api(mut document: Value, source: &str) -> anyhow::Result<Value> {
    let schemas = document["components"]["schemas"].take();
    let named = source.split("Schemas[\"").skip(1);
    let mut open: Vec<String> = named
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .collect();
    let mut kept = serde_json::Map::new();
    while let Some(name) = open.pop() {
        if kept.contains_key(&name) {
            continue;
        }
        let schema = schemas.get(&name).with_context(|| {
            format!("clients/typescript names `{name}`, which the API does not have")
        })?;
        let text = schema.to_string();
        let names = text.split("#/components/schemas/").skip(1);
        open.extend(names.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        kept.insert(name, schema.clone());
    }
    document["components"] = json!({ "schemas": kept });
    document["paths"] = json!({});
    Ok(document)
}

/// Writes what was compiled to where people install it from without a compiler.
///
/// # Errors
/// Something else was there: it has to be committed.
fn ship(made: &Path, shipped: &Path) -> anyhow::Result<()> {
    let mut differs = Vec::new();
    for file in walkdir(made)? {
        let target = shipped.join(file.strip_prefix(made)?);
        if fs::read(&file)? != fs::read(&target).unwrap_or_default() {
            fs::create_dir_all(shipped)?;
            fs::copy(&file, &target)?;
            differs.push(target.display().to_string());
        }
    }
    ensure!(
        differs.is_empty(),
        "written anew, commit it: {}",
        differs.join(", ")
    );
    Ok(())
}

/// Copies a package, so that what is made in it stays out of the repository; returns where it is.
fn copied(from: &Path, to: &Path) -> anyhow::Result<PathBuf> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    for entry in walkdir(from)? {
        let target = to.join(entry.strip_prefix(from)?);
        fs::create_dir_all(target.parent().context("a file lies in a folder")?)?;
        fs::copy(&entry, &target)?;
    }
    Ok(to.to_owned())
}

/// Returns all files below a folder.
fn walkdir(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(walkdir(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// A server that ends with this value.
struct Server {
    child: Child,
    address: String,
    workdir: PathBuf,
}

impl Server {
    fn start(gyrus: &Path, at: &Path) -> anyhow::Result<Self> {
        if at.exists() {
            fs::remove_dir_all(at)?;
        }
        let workdir = at.join("work");
        for folder in ["home/agents", "person", "work"] {
            fs::create_dir_all(at.join(folder))?;
        }
        let agent = format!("---\nworkdir: {}\n---\nWatch.\n", workdir.display());
        fs::write(at.join("home/agents/watcher.md"), agent)?;
        let script = at.join("script.toml");
        fs::write(&script, SCRIPT)?;
        let mut child = Command::new(gyrus)
            .args(["serve", "--port", "0", "--token", TOKEN])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", at.join("person"))
            .env("GYRUS_HOME", at.join("home"))
            .env("GYRUS_MODEL", format!("script:{}", script.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("the server cannot be started")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the server has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let Some((address, _)) = line.split_once("/#") else {
            child.kill()?;
            child.wait()?;
            bail!("the server did not start");
        };
        Ok(Self {
            child,
            address: address.to_owned(),
            workdir,
        })
    }

    /// Adds where the server is and who asks.
    fn told<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .arg(&self.address)
            .arg(&self.workdir)
            .env("GYRUS_TOKEN", TOKEN)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
