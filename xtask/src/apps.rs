//! Installs real applications below `target/apps` and measures how complete our view of them is.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

use crate::{programs::run_in, repository};

const PYTHON: [&str; 8] = [
    "django==5.2.*",
    "jupyterlab==4.*",
    "datasette==0.65.*",
    "streamlit==1.*",
    "gradio==6.*",
    "wagtail==8.*",
    "nicegui==3.*",
    "Trac==1.6.*",
];

const JAVASCRIPT: [&str; 19] = [
    "node-red@4",
    "tiddlywiki@5",
    "ep_etherpad-lite@1",
    "fullcalendar@6",
    "sortablejs@1",
    "monaco-editor@0.52",
    "@excalidraw/excalidraw@0.18",
    "react@18",
    "react-dom@18",
    "@mui/material@9",
    "@mui/x-tree-view@9",
    "@emotion/react@11",
    "@emotion/styled@11",
    "swagger-ui-dist@5",
    "redoc@2",
    "ag-grid-community@36",
    "quill@2",
    "leaflet@1",
    "bootstrap@5",
];

/// Applications that must be bundled before a browser can read them.
const BUNDLED: [&str; 2] = ["excalidraw", "mui"];

/// Installs what is missing, and returns the folder.
pub(crate) fn installed() -> anyhow::Result<PathBuf> {
    let root = repository::root()?;
    let installed = root.join("target/apps");
    // The last thing that an installation makes.
    let stamp = installed.join("packages");
    let packages = [&PYTHON[..], &JAVASCRIPT[..]].concat().join("\n");
    if std::fs::read_to_string(&stamp).ok().as_deref() != Some(&packages) {
        install(&installed, &root.join("benches/examples/apps/pages"))?;
        std::fs::write(&stamp, packages)
            .with_context(|| format!("cannot write {}", stamp.display()))?;
    }
    Ok(installed)
}

/// Measures the applications whose names hold one of `arguments`, or does tasks on them if the
/// first argument is `tasks`.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let installed = installed()?;
    let example = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "gyrus-bench",
        "--example",
        "apps",
        "--",
    ];
    let status = repository::cargo(&example)?
        .arg(&installed)
        .args(arguments)
        .status()?;
    ensure!(status.success(), "`apps` ended with {status}");
    Ok(())
}

fn install(into: &Path, pages: &Path) -> anyhow::Result<()> {
    println!(
        "installing applications in {}; this takes minutes",
        into.display()
    );
    let npm = into.join("npm");
    std::fs::create_dir_all(&npm).with_context(|| format!("cannot make {}", npm.display()))?;
    run_in(into, Command::new("python3").args(["-m", "venv", "venv"]))?;
    let mut pip = Command::new(into.join("venv/bin/pip"));
    run_in(into, pip.args(["install", "--quiet"]).args(PYTHON))?;
    let mut packages = Command::new("npm");
    packages.args([
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "esbuild@0.28",
    ]);
    run_in(&npm, packages.args(JAVASCRIPT))?;
    let mut bundle = Command::new(npm.join("node_modules/.bin/esbuild"));
    bundle.args(BUNDLED.map(|name| pages.join(name).with_extension("jsx")));
    bundle.args([
        "--bundle",
        "--format=esm",
        "--jsx=automatic",
        "--conditions=production",
    ]);
    bundle.args([
        "--define:process.env.NODE_ENV=\"production\"",
        "--define:process.env.IS_PREACT=\"false\"",
    ]);
    bundle.args([
        "--loader:.woff2=file",
        "--outdir=../built",
        "--log-level=error",
    ]);
    run_in(&npm, bundle.env("NODE_PATH", npm.join("node_modules")))
}
