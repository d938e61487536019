//! The programs of a nested desktop. One shell starts all of them on request, so that they share a
//! process tree and one sandbox, if the desktop is confined.
//!
//! Requests and ends go through two named pipes that this process opened before anything else ran.
//! Whatever a confined program writes into them or puts in their place, it starts only what it could
//! start itself.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    sync::Arc,
    time::Duration,
};

use gyrus_contract::{CommandOutcome, CommandSpec, Exit};
use parking_lot::Mutex;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use tokio::{io::AsyncReadExt as _, net::unix::pipe, sync::oneshot, task::JoinHandle};

use super::enclosure::Enclosure;

/// Script that starts the requested programs: lines of a number and a command.
const SCRIPT: &str = r#"
exec 3<>"$1/requests" 4<>"$1/ends" || exit 1
while IFS= read -r request <&3; do
  number=${request%% *}
  (
    eval "${request#* }" 3>&- 4>&- </dev/null >"$1/said-$number" 2>&1
    echo "$number $?" >&4
  ) &
done
"#;

/// Maximum running time of a desktop.
const LIFE: Duration = Duration::from_hours(24 * 30);

/// Maximum number of kept bytes of the script's own output.
const OUTPUT_BYTES: usize = 4 * 1024;

/// Number of bytes at the end of a program's output that are searched for its last message.
const SAID_BYTES: u64 = 2_000;

/// Maximum length of a line that reports an end.
const MAX_END_BYTES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramEnd {
    /// Description of the end.
    pub(super) words: String,
    /// Whether the program reported success, as one does that only hands over to another program.
    pub(super) is_success: bool,
}

pub(super) struct StartRequest<'a> {
    /// The kind of program, for messages.
    pub(super) what: &'static str,
    /// The program's absolute path and its arguments.
    pub(super) words: &'a [String],
    /// Variables that are set for this program alone.
    pub(super) variables: &'a [(&'static str, String)],
    /// A file that the program gets as descriptor 5, by its path as programs see it.
    pub(super) descriptor: Option<String>,
}

type RunningPrograms = Arc<Mutex<BTreeMap<u32, ProgramStart>>>;

struct ProgramStart {
    what: &'static str,
    said: File,
    end: oneshot::Sender<ProgramEnd>,
}

/// The shell that starts programs.
pub(super) struct Launcher {
    requests: File,
    running: RunningPrograms,
    last: u32,
    tasks: Vec<JoinHandle<()>>,
}

impl Launcher {
    /// Starts the shell `sh` in an enclosure.
    pub(super) fn start(
        enclosure: &Enclosure,
        shell: String,
        environment: BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let pipe = |name: &str| -> io::Result<File> {
            let path = enclosure.path(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            // Opened for both, so that opening never blocks.
            let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).custom_flags(nonblocking);
            options.open(path)
        };
        let requests = pipe("requests")?;
        let ends = pipe::Receiver::from_file_unchecked(pipe("ends")?)?;
        let spec = CommandSpec {
            program: shell,
            arguments: ["-c", SCRIPT, "sh", &enclosure.inner_path(".")]
                .map(str::to_owned)
                .to_vec(),
            folder: enclosure.begins_in(),
            environment,
            stdin: String::new(),
            time_limit_ms: u64::try_from(LIFE.as_millis()).unwrap_or(u64::MAX),
            head_bytes: OUTPUT_BYTES,
            tail_bytes: OUTPUT_BYTES,
        };
        let running = RunningPrograms::default();
        let (whole, of_shell) = ((enclosure.run())(spec), Arc::clone(&running));
        let shell = tokio::spawn(async move {
            let why = match whole.await {
                Ok(outcome) => format!("its desktop ended: {}", how_it_ended(&outcome)),
                Err(error) => format!("its desktop cannot run: {error}"),
            };
            let all = std::mem::take(&mut *of_shell.lock());
            for started in all.into_values() {
                let _ = started.end.send(ProgramEnd {
                    words: format!("{} was ended, since {why}", started.what),
                    is_success: false,
                });
            }
        });
        let told = tokio::spawn(hear(ends, Arc::clone(&running)));
        Ok(Self {
            requests,
            running,
            last: 0,
            tasks: vec![told, shell],
        })
    }

    /// Starts a program, and returns the receiver of its end.
    pub(super) fn launch(
        &mut self,
        enclosure: &Enclosure,
        request: &StartRequest<'_>,
    ) -> io::Result<oneshot::Receiver<ProgramEnd>> {
        self.last += 1;
        let number = self.last;
        let words = request.words.iter().map(|word| quoted(word));
        let variables = request.variables.iter();
        let variables = variables.map(|(name, value)| format!("{name}={}", quoted(value)));
        let command: Vec<String> = variables.chain(words).collect();
        let mut line = format!("{number} {}", command.join(" "));
        if let Some(descriptor) = &request.descriptor {
            line.push_str(&format!(" 5>{}", quoted(descriptor)));
        }
        if line.contains(['\n', '\0']) {
            let why = "a line break in an argument cannot be passed to a program on a desktop";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        line.push('\n');
        let said = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(enclosure.path(&format!("said-{number}")))?;
        let (end, told) = oneshot::channel();
        let started = ProgramStart {
            what: request.what,
            said,
            end,
        };
        let mut running = self.running.lock();
        running.insert(number, started);
        self.requests.write_all(line.as_bytes())?;
        Ok(told)
    }

    /// Ends all started programs.
    pub(super) async fn end(mut self) {
        for task in std::mem::take(&mut self.tasks) {
            task.abort();
            let _ = task.await;
        }
    }
}

/// Ends a desktop that is given up, since dropping a task's handle alone would let it run on.
impl Drop for Launcher {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Passes on the ends of programs. What is no line of a number and a code is skipped.
async fn hear(mut ends: pipe::Receiver, running: RunningPrograms) {
    let (mut read, mut pending) = ([0; 512], Vec::new());
    while let Ok(count @ 1..) = ends.read(&mut read).await {
        for byte in &read[..count] {
            match byte {
                b'\n' => pass_on(&std::mem::take(&mut pending), &running),
                _ if pending.len() < MAX_END_BYTES => pending.push(*byte),
                _ => {}
            }
        }
    }
}

fn pass_on(line: &[u8], running: &RunningPrograms) {
    let line = String::from_utf8_lossy(line);
    let told = line.split_once(' ');
    let told = told.and_then(|(number, code)| Some((number.parse().ok()?, code.parse().ok()?)));
    let Some((number, code)) = told else {
        return;
    };
    let mut running = running.lock();
    if let Some(ended) = running.remove(&number) {
        let words = format!("{} ended: {}", ended.what, words(code, ended.said));
        let is_success = code == 0;
        let _ = ended.end.send(ProgramEnd { words, is_success });
    }
}

/// Describes the end of a program, with the last line of its output. A shell gives a program that a
/// signal ended the code 128 and its number.
fn words(code: i32, said: File) -> String {
    let exit = match code {
        129..=192 => format!("signal {}", code - 128),
        _ => format!("exit code {code}"),
    };
    with_last_line(exit, &last_bytes(said).unwrap_or_default())
}

fn last_bytes(mut said: File) -> io::Result<String> {
    let length = said.metadata()?.len();
    said.seek(SeekFrom::Start(length.saturating_sub(SAID_BYTES)))?;
    let mut bytes = Vec::new();
    said.take(SAID_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn how_it_ended(outcome: &CommandOutcome) -> String {
    let exit = match outcome.exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut => "it was ended".to_owned(),
    };
    let said = format!("{}\n{}", outcome.output.head, outcome.output.tail);
    with_last_line(exit, &said)
}

fn with_last_line(exit: String, said: &str) -> String {
    match said.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("{exit}; it said: {}", line.trim()),
        None => exit,
    }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
