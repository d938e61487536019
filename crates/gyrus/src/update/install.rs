//! Putting a newer program in the place of this one: unpacked beside it, tried, and renamed. The
//! program that was there is kept beside it, and comes back if the new one finds fault here.

use std::{
    env, fs,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use flate2::read::GzDecoder;

use super::Package;
use crate::failure::Failure;

/// Maximum bytes of a program.
const MAX_PROGRAM: u64 = 1 << 30;

#[derive(Debug, PartialEq)]
pub(crate) enum UpdateEnd {
    /// The new program is in place; the old one is kept there.
    Replaced { kept: PathBuf },
    /// The new program found fault, in these words, and the old one is in its place again.
    WentBack(String),
}

/// Puts the program of an archive in the place of this one.
///
/// # Errors
/// Nothing was changed: the archive holds no program that runs here, or the program's folder cannot be
/// written.
pub(crate) fn install(package: &Package, archive: &[u8]) -> Result<UpdateEnd, Failure> {
    let program = own_path()?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let failed = |error: io::Error| {
        let program = program.display();
        Failure::failed(format!("{program} cannot be replaced"))
            .because(&error)
            .hint("if a package manager installed it, have that update it")
    };
    let bytes = unpack(package, archive)?;
    let new = tempfile::Builder::new()
        .prefix(".gyrus-")
        .tempfile_in(folder)
        .map_err(failed)?;
    fs::write(new.path(), bytes).map_err(failed)?;
    fs::set_permissions(new.path(), fs::Permissions::from_mode(0o755)).map_err(failed)?;
    new.as_file().sync_all().map_err(failed)?;
    // A file that is open for writing cannot be started.
    let new = new.into_temp_path();
    let version = said(&new, "--version");
    let is_it =
        |said: &(Option<i32>, String)| said.0 == Some(0) && said.1.contains(&package.version);
    if !version.as_ref().is_ok_and(is_it) {
        let why = version.map_or_else(|error| error.to_string(), |(_, said)| said);
        let version = &package.version;
        return Err(Failure::failed(format!(
            "the program of {version} does not run here: {why}"
        )));
    }
    let before = said(&program, "doctor").map_err(failed)?;
    let kept = kept(&program);
    match fs::remove_file(&kept) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    fs::hard_link(&program, &kept)
        .or_else(|_| fs::copy(&program, &kept).map(drop))
        .map_err(failed)?;
    new.persist(&program).map_err(|error| failed(error.error))?;
    let after = said(&program, "doctor");
    let found = match after {
        // What was amiss before is no fault of the new program.
        Ok((code, _)) if code == Some(0) || code == before.0 => {
            fs::File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(failed)?;
            return Ok(UpdateEnd::Replaced { kept });
        }
        Ok((_, said)) => said,
        Err(error) => error.to_string(),
    };
    fs::rename(&kept, &program).map_err(failed)?;
    Ok(UpdateEnd::WentBack(found))
}

/// Puts the program back that the last update replaced, and returns its path.
///
/// # Errors
/// There is none, or it cannot be put back.
pub(crate) fn go_back() -> Result<PathBuf, Failure> {
    let program = own_path()?;
    let kept = kept(&program);
    if !kept.exists() {
        return Err(Failure::usage(format!(
            "there is no earlier program at {}",
            kept.display()
        )));
    }
    fs::rename(&kept, &program).map_err(|error| {
        Failure::failed(format!("{} cannot be put back", kept.display())).because(&error)
    })?;
    Ok(program)
}

fn own_path() -> Result<PathBuf, Failure> {
    let path = env::current_exe().map_err(|error| {
        Failure::failed("the file of this program cannot be found").because(&error)
    })?;
    if path.exists() {
        return Ok(path);
    }
    Err(
        Failure::failed("the file of this program was replaced since it started")
            .hint("type the command again"),
    )
}

fn kept(program: &Path) -> PathBuf {
    let mut name = program.file_name().unwrap_or_default().to_owned();
    name.push(".previous");
    program.with_file_name(name)
}

/// Runs a program, and returns its exit code and what it printed.
fn said(program: &Path, argument: &str) -> io::Result<(Option<i32>, String)> {
    let mut command = Command::new(program);
    let output = command.arg(argument).stdin(Stdio::null()).output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let bad: Vec<_> = text.lines().filter(|line| line.contains('✗')).collect();
    let told = if bad.is_empty() {
        text.trim().to_owned()
    } else {
        bad.join("; ")
    };
    Ok((output.status.code(), told))
}

fn unpack(package: &Package, archive: &[u8]) -> Result<Vec<u8>, Failure> {
    let wanted = Path::new(package.folder()).join("bin/gyrus");
    let read = || -> io::Result<Option<Vec<u8>>> {
        let mut archive = tar::Archive::new(GzDecoder::new(archive));
        for entry in archive.entries()? {
            let entry = entry?;
            if entry.path()? == wanted && entry.header().entry_type().is_file() {
                let mut bytes = Vec::new();
                entry.take(MAX_PROGRAM).read_to_end(&mut bytes)?;
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    };
    let failed = || Failure::failed(format!("the package of {} has no program", package.version));
    match read() {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(failed()),
        Err(error) => Err(failed().because(&error)),
    }
}
