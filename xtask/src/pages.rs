//! Looks at the dashboard with the eyes of others: axe-core looks for what keeps people from using
//! its pages, and the TypeScript compiler checks its scripts.

use std::{fs, process::Command};

use anyhow::{Context, ensure};

use crate::{programs::run_in, repository};

/// Packages that only these checks use; nothing of them is shipped.
const PACKAGES: [&str; 2] = ["axe-core@4.14.1", "typescript@5"];

/// Installs what is missing below `target/pages`, and checks scripts and pages.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = repository::root()?;
    let at = root.join("target/pages");
    let axe = at.join("node_modules/axe-core/axe.min.js");
    if !axe.exists() {
        fs::create_dir_all(&at).with_context(|| format!("cannot make {}", at.display()))?;
        fs::write(at.join("package.json"), "{\"private\": true}\n")?;
        let mut install = Command::new("npm");
        install.args(["install", "--silent", "--no-audit", "--no-fund"]);
        run_in(&at, install.args(PACKAGES))?;
    }
    let mut compile = Command::new(at.join("node_modules/.bin/tsc"));
    compile.args(["--noEmit", "--allowJs", "--checkJs", "--strict"]);
    compile.args(["--target", "es2022", "--module", "es2022"]);
    compile.args(["--moduleResolution", "bundler"]);
    compile.args(["--lib", "es2023,dom,dom.iterable"]);
    compile.args([
        root.join("web/main.js"),
        root.join("web/positions-worker.js"),
    ]);
    run_in(&at, &mut compile)?;
    let test = ["nextest", "run", "--package", "gyrus", "--test", "cli"];
    let mut look = repository::cargo(&test)?;
    look.arg("server::accessible").env("GYRUS_AXE", &axe);
    ensure!(look.status()?.success(), "a page can be used by some only");
    Ok(())
}
