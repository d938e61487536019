//! `gyrus completions`

use clap::Args;
use clap_complete::Shell;
use gyrus_surfaces::output;

use crate::{Gyrus, exit::Code, failure::Failure};

/// Print the script by which a shell completes commands and flags
///
/// bash: `gyrus completions bash > ~/.local/share/bash-completion/completions/gyrus`. fish:
/// `gyrus completions fish > ~/.config/fish/completions/gyrus.fish`. zsh: into a file `_gyrus` in a
/// folder of `$fpath`.
#[derive(Args)]
pub(crate) struct Completions {
    shell: Shell,
}

impl Completions {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut (gyrus.command_line)(),
            "gyrus",
            &mut script,
        );
        let script = String::from_utf8_lossy(&script);
        write!(output::standard(), "{script}")?;
        Ok(Code::Reached)
    }
}
