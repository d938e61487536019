//! The tool `clipboard`: the text on the clipboard of the person's desktop.
//!
//! A desktop keeps no copy: the program that sets the clipboard must keep running to serve the
//! text. The keeper ends everything that a call started, so a text stays only where a clipboard
//! manager takes it over; most desktops have one. Setting therefore offers the text for a moment,
//! ends the helper, reads the clipboard back, and reports what it read.

use std::{collections::BTreeMap, env, ffi::OsStr, path::Path, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gyrus_contract::{
    ActionVerdict, Arguments, CommandOutcome, CommandSpec, Exit, KeeperError, Repeat, ResolvedCall,
    Site, ToolOutput, Touch, TypedTool,
};
use gyrus_process::{ProgramError, Programs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::ToolFailure;

/// Maximum bytes of text written to the clipboard or shown from it.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Time limit of a helper program, in milliseconds.
const TIME_LIMIT_MS: u64 = 10_000;

/// Marker before the text that was read back.
const READ_BACK: &str = "--- read back ---\n";

/// Sets the clipboard, ends the helper, and reads the clipboard back. The program `$1` sets,
/// staying in the foreground; the program `$3` reads; `$2` and `$4` are their arguments, words
/// without quotes; `$5` is printed before the text that was read back. A clipboard manager is
/// notified of a new text at once, but does not report when it has copied it, hence the half
/// second.
const SET: &str = "exec 3<&0\n\
    \"$1\" $2 <&3 >&2 & owner=$!\n\
    sleep 0.5\n\
    kill $owner 2>/dev/null\n\
    wait $owner\n\
    case $? in 0|143) ;; *) exit 1 ;; esac\n\
    printf %s \"$5\"\n\
    exec \"$3\" $4 2>/dev/null";

/// Maximum bytes of a picture in Base64; providers take none that is larger.
const MAX_PICTURE_BASE64: usize = 7 << 20;

struct Helper {
    /// The environment variable that names a desktop of this kind.
    desktop: &'static str,
    /// Program and arguments that print only the text.
    read: (&'static str, &'static str),
    /// Arguments with which the same program prints a picture.
    picture: Option<&'static str>,
    /// Program and arguments that take the text from standard input and stay to serve it.
    set: (&'static str, &'static str),
}

/// The helpers in order of preference.
const HELPERS: [Helper; 3] = [
    Helper {
        desktop: "WAYLAND_DISPLAY",
        read: ("wl-paste", "--no-newline --type text"),
        picture: Some("--no-newline --type image/png"),
        set: ("wl-copy", "--foreground --type text/plain"),
    },
    Helper {
        desktop: "DISPLAY",
        read: ("xclip", "-selection clipboard -out -target UTF8_STRING"),
        picture: Some("-selection clipboard -out -target image/png"),
        set: ("xclip", "-selection clipboard -in -verbose"),
    },
    Helper {
        desktop: "DISPLAY",
        read: ("xsel", "--clipboard --output --nodetach"),
        picture: None,
        set: ("xsel", "--clipboard --input --nodetach"),
    },
];

/// Reads and sets the clipboard.
pub struct Clipboard {
    programs: Arc<Programs>,
    environment: BTreeMap<String, String>,
}

/// Reads the person's clipboard, or sets it to `text`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClipboardArguments {
    text: Option<String>,
}

impl Arguments for ClipboardArguments {
    const TOOL: &'static str = "clipboard";
    const EXAMPLE: &'static str = r#"{"text": "for the clipboard"}"#;
}

#[derive(Serialize)]
struct ClipboardText {
    /// The text; empty if the clipboard holds none.
    text: String,
}

impl Clipboard {
    /// Creates the tool for the desktop of this process.
    #[expect(clippy::new_without_default, reason = "it looks at the environment")]
    pub fn new() -> Self {
        let programs = Arc::clone(Programs::of_this_process());
        Self::over(|name| env::var(name).ok(), programs)
    }

    /// Creates the tool for the desktop that these variables name: `DISPLAY`, `WAYLAND_DISPLAY`,
    /// `XDG_RUNTIME_DIR`, `XAUTHORITY` (else `.Xauthority` in `HOME`), with helpers from `PATH`.
    pub fn with_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let programs = Programs::on_path(variable("PATH").as_deref().map(OsStr::new));
        Self::over(variable, Arc::new(programs))
    }

    fn over(variable: impl Fn(&str) -> Option<String>, programs: Arc<Programs>) -> Self {
        let environment = environment(variable, programs.path());
        Self {
            programs,
            environment,
        }
    }

    /// Returns the first installed helper for this desktop, and the path of its reading program.
    fn helper(&self) -> Result<(&'static Helper, String), String> {
        let has = |helper: &&Helper| self.environment.contains_key(helper.desktop);
        let mut fitting = HELPERS.iter().filter(has).peekable();
        if fitting.peek().is_none() {
            return Err(
                "there is no desktop, so there is no clipboard: neither WAYLAND_DISPLAY nor \
                 DISPLAY was set when gyrus started"
                    .to_owned(),
            );
        }
        let mut missing = Vec::new();
        for helper in fitting {
            match self.program(helper.read.0) {
                Ok(read) => return Ok((helper, read)),
                Err(error) => missing.push(error.to_string()),
            }
        }
        Err(format!(
            "the clipboard needs a helper program that is not installed: {} (wl-paste and wl-copy \
             are in the package wl-clipboard). Ask the person to install one",
            missing.join(", or ")
        ))
    }

    fn program(&self, name: &str) -> Result<String, ProgramError> {
        let found = self.programs.find(name)?;
        Ok(found.path.display().to_string())
    }

    async fn read(&self, site: &dyn Site) -> Result<ToolOutput, ToolFailure> {
        let command = self.reading(site.workspace()).map_err(ToolFailure::new)?;
        let outcome = site.run_command(command).await?;
        let text = Self::text_of(outcome).map_err(ToolFailure::new)?;
        let shown = text.clone().unwrap_or_else(|| EMPTY.to_owned());
        let text = text.unwrap_or_default();
        Ok(ToolOutput::read(shown).with_value(&ClipboardText { text }))
    }

    /// Returns the command that prints the clipboard's text, run in `folder`. It is for the
    /// person's own program, which passes the text on to a run.
    ///
    /// # Errors
    /// Returns text when there is no desktop or no helper program.
    pub fn reading(&self, folder: &Path) -> Result<CommandSpec, String> {
        let (helper, read) = self.helper()?;
        let words = helper.read.1.split(' ').map(str::to_owned).collect();
        Ok(self.command(read, words, String::new(), folder))
    }

    /// Returns the command that prints the picture on the clipboard in Base64, run in `folder`; it prints
    /// nothing if there is none.
    ///
    /// # Errors
    /// Returns text when there is no desktop, or no helper program that can do it.
    pub fn reading_picture(&self, folder: &Path) -> Result<CommandSpec, String> {
        let (helper, read) = self.helper()?;
        let picture = helper
            .picture
            .ok_or("pictures need wl-paste or xclip, which is not installed")?;
        let shell = self.program("sh").map_err(|error| error.to_string())?;
        let line = "\"$1\" $2 2>/dev/null | base64 -w0";
        let words = ["-c", line, "sh", &read, picture].map(str::to_owned);
        let command = self.command(shell, words.into(), String::new(), folder);
        Ok(CommandSpec {
            head_bytes: MAX_PICTURE_BASE64,
            ..command
        })
    }

    /// Returns the bytes that [`reading_picture`](Self::reading_picture) printed; `None` if there is no
    /// picture, or one that is too large.
    pub fn picture_of(outcome: &CommandOutcome) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(outcome.output.head.trim()).ok()?;
        (!bytes.is_empty() && outcome.output.omitted_bytes == 0).then_some(bytes)
    }

    /// Returns the text that [`reading`](Self::reading) printed; `None` if there is no text on the
    /// clipboard.
    ///
    /// # Errors
    /// Returns text when the clipboard could not be read.
    pub fn text_of(outcome: CommandOutcome) -> Result<Option<String>, String> {
        let CommandOutcome { exit, output } = outcome;
        match exit {
            Exit::Code(0) if output.head.is_empty() => Ok(None),
            Exit::Code(0) => {
                let mut text = output.head;
                let cut = output.omitted_bytes + output.tail.len() as u64;
                if cut > 0 {
                    text.push_str(&format!(
                        "\n[cut: {} on the clipboard]",
                        gyrus_text::counted(cut, "more byte")
                    ));
                }
                Ok(Some(text))
            }
            Exit::TimedOut => Err(
                "the program that set the clipboard does not hand its text out; try again later"
                    .to_owned(),
            ),
            // The helpers have no exit code of its own for an empty one.
            _ if holds_no_text(&output.head) => Ok(None),
            _ => Err(failed(&output.head)),
        }
    }

    async fn set(&self, text: &str, site: &dyn Site) -> Result<ToolOutput, ToolFailure> {
        let revealed = site.reveal(text);
        let text = revealed.map_err(|error| ToolFailure::from(error).and("; nothing was set"))?;
        if text.is_empty() || text.len() > MAX_TEXT_BYTES {
            return Err(ToolFailure::new(format!(
                "`text` must have between 1 and {MAX_TEXT_BYTES} bytes; put a longer one into a \
                 file"
            )));
        }
        let (helper, read) = self.helper().map_err(ToolFailure::new)?;
        let (set, shell) = (self.program(helper.set.0)?, self.program("sh")?);
        let script = ["-c", SET, "sh", &set, helper.set.1, &read, helper.read.1];
        let script = script.into_iter().chain([READ_BACK]).map(str::to_owned);
        let command = self.command(shell, script.collect(), text.clone(), site.workspace());
        let outcome = match site.run_command(command).await {
            Ok(outcome) => outcome,
            Err(error @ KeeperError::Start { .. }) => return Err(error.into()),
            Err(error @ KeeperError::Keeper { .. }) => {
                return Ok(ToolOutput {
                    verdict: ActionVerdict::CannotTell,
                    ..ToolOutput::error(format!("{error}; the clipboard may have been set"))
                });
            }
        };
        let printed = outcome.output.head;
        let Some((_, read_back)) = printed.split_once(READ_BACK) else {
            return Err(ToolFailure::new(failed(&printed)));
        };
        if read_back == text {
            let words = format!("the clipboard holds the text ({} bytes)", text.len());
            return Ok(ToolOutput {
                verdict: ActionVerdict::Changed,
                ..ToolOutput::read(words)
            });
        }
        // The previous text is lost.
        Ok(ToolOutput {
            verdict: ActionVerdict::Changed,
            ..ToolOutput::error(
                "the text did not stay on the clipboard, and what was there before is gone: this \
                 desktop has no clipboard manager that would keep it after the helper's end. Give \
                 the person the text in a file or in your answer",
            )
        })
    }

    fn command(
        &self,
        program: String,
        arguments: Vec<String>,
        stdin: String,
        folder: &Path,
    ) -> CommandSpec {
        CommandSpec {
            program,
            arguments,
            folder: folder.to_owned(),
            environment: self.environment.clone(),
            stdin,
            time_limit_ms: TIME_LIMIT_MS,
            // More than the text: before what is read back, helpers print words of their own.
            head_bytes: 2 * MAX_TEXT_BYTES,
            tail_bytes: 0,
        }
    }
}

impl TypedTool for Clipboard {
    type Arguments = ClipboardArguments;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Never;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Clipboard]
    }

    async fn run(
        &self,
        arguments: ClipboardArguments,
        _call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        match arguments.text {
            Some(text) => self.set(&text, site).await,
            None => self.read(site).await,
        }
    }
}

const EMPTY: &str = "(there is no text on the clipboard)";

fn holds_no_text(printed: &str) -> bool {
    [
        "Nothing is copied",
        "No selection",
        "No suitable type",
        "Clipboard content is not available",
        "target STRING not available",
    ]
    .iter()
    .any(|words| printed.contains(words))
}

fn failed(printed: &str) -> String {
    let printed = gyrus_text::shorten(printed.trim(), 500);
    format!("the clipboard cannot be reached: {printed}")
}

/// Returns only the variables by which helpers find the desktop.
fn environment(
    variable: impl Fn(&str) -> Option<String>,
    path: String,
) -> BTreeMap<String, String> {
    let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut environment = BTreeMap::from([
        ("PATH".to_owned(), path),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
    ]);
    for name in [
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XDG_RUNTIME_DIR",
        "XAUTHORITY",
    ] {
        environment.extend(filled(name).map(|value| (name.to_owned(), value)));
    }
    if !environment.contains_key("XAUTHORITY")
        && let Some(home) = filled("HOME")
    {
        let file = Path::new(&home).join(".Xauthority");
        if file.is_file() {
            environment.insert("XAUTHORITY".to_owned(), file.display().to_string());
        }
    }
    environment
}
