//! The socket at which `gyrus take` and a server reach the process that drives a run, which alone
//! has its browser. It lies in gyrus's own folder, where no command of a run comes. It carries a
//! line of JSON each way. Whoever took the browser over and closes it has given the browser back.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{DirBuilderExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gyrus::runtime::{Home, RunScreen};
use gyrus_contract::{Answer, Arguments as _, HandOverCall, MessageBody, Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{
    Entry, Takeovers,
    approvals::{self, ApprovalError, OpenQuestion},
    log_name,
};
use gyrus_process::keeper;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream, unix::OwnedWriteHalf},
    sync::Mutex,
    task::JoinHandle,
};

use crate::failure::Failure;

/// Maximum size of a picture and the line before it, in bytes.
const MAX_PICTURE: u64 = 32 << 20;

/// The reason for which nobody else gets a picture while a person has the browser.
const A_PERSON_HAS_IT: &str = "a person has the screen";

/// No line is longer, in bytes.
const LINE: u64 = 16 * 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VisitorRequest {
    /// The person takes the browser over.
    TakeOver { by: Principal },
    /// The client asks for a picture of the browser's page.
    Picture,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VisitorMessage {
    At(String),
    /// The browser was given back to the run, with these words.
    GivenBack {
        words: Option<String>,
    },
    /// The picture of the browser's page follows: a PNG of this many bytes.
    Picture {
        bytes: usize,
    },
    /// The browser cannot be taken over, or was lost.
    No {
        why: String,
    },
}

/// The door of one run. Dropping it takes the browser back from whoever has it.
pub(crate) struct TakeoverDoor {
    task: JoinHandle<()>,
    socket: PathBuf,
}

impl Drop for TakeoverDoor {
    fn drop(&mut self) {
        self.task.abort();
        // One that stays leads nowhere.
        let _ = fs::remove_file(&self.socket);
    }
}

pub(crate) struct Behind {
    pub(crate) store: Store,
    pub(crate) run: RunId,
    pub(crate) takeovers: Takeovers,
    pub(crate) screen: RunScreen,
}

pub(crate) fn folder(home: &Home) -> PathBuf {
    home.state.join("take")
}

/// Age at which a file that leads to a takeover page is removed; a browser opens it in seconds.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of sockets that one [`sweep`] examines.
const MAX_SWEPT: usize = 1_000;

/// Removes the sockets of runs that no process holds, because their processes were killed.
pub(crate) fn sweep(home: &Home) -> Result<(), Failure> {
    let Ok(entries) = fs::read_dir(folder(home)) else {
        return Ok(());
    };
    let store = home.store()?;
    for entry in entries.flatten().take(MAX_SWEPT) {
        let name = entry.file_name();
        let is_way = Path::new(&name)
            .extension()
            .is_some_and(|kind| kind == "html");
        if is_way && is_old(&entry) {
            let _ = fs::remove_file(entry.path());
        }
        let run: Option<RunId> = name.to_str().and_then(|name| name.parse().ok());
        if let Some(run) = run
            && store.holder(&log_name(run))?.is_none()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Whether a file is so old that the process that created it has ended.
fn is_old(entry: &fs::DirEntry) -> bool {
    let changed = entry.metadata().and_then(|data| data.modified()).ok();
    let age = changed.and_then(|changed| changed.elapsed().ok());
    age.is_some_and(|age| age > OLD)
}

/// Returns a short path of a door's socket, since the path of a socket is limited to 107 bytes.
fn short_path(folder: &Path, run: RunId) -> io::Result<(File, PathBuf)> {
    let folder = File::open(folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{run}", folder.as_raw_fd()));
    Ok((folder, path))
}

pub(crate) async fn knock(home: &Home, run: RunId) -> io::Result<UnixStream> {
    let (_folder, path) = short_path(&folder(home), run)?;
    UnixStream::connect(path).await
}

/// Asks a run for a picture of its browser's page, as PNG.
///
/// # Errors
/// The run has no screen, or its screen shows nothing at this moment.
pub(crate) async fn picture(home: &Home, run: RunId) -> Result<Vec<u8>, Failure> {
    let none = || Failure::failed(format!("run {} has no screen to look at", run.short()));
    let stream = knock(home, run).await.map_err(|_| none())?;
    let (reader, mut writer) = stream.into_split();
    writer
        .write_all(line(&VisitorRequest::Picture).as_bytes())
        .await?;
    let mut reader = BufReader::new(reader.take(MAX_PICTURE));
    let mut told = String::new();
    reader.read_line(&mut told).await?;
    match serde_json::from_str(&told) {
        Ok(VisitorMessage::Picture { bytes }) => {
            let mut picture = Vec::new();
            reader.read_to_end(&mut picture).await?;
            if picture.len() == bytes {
                Ok(picture)
            } else {
                Err(none())
            }
        }
        Ok(VisitorMessage::No { why }) => Err(Failure::failed(why)),
        _ => Err(none()),
    }
}

impl TakeoverDoor {
    /// Opens the door; it is closed when the result is dropped.
    pub(crate) fn open(home: &Home, behind: Behind) -> io::Result<Self> {
        let folder = folder(home);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let socket = folder.join(behind.run.to_string());
        // Of a process that was killed: this one holds the run now.
        let _ = fs::remove_file(&socket);
        let (_folder, path) = short_path(&folder, behind.run)?;
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        let behind = Arc::new(behind);
        let turn = Arc::new(Mutex::new(()));
        let task = tokio::spawn(async move {
            let mut visits = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (behind, turn) = (behind.clone(), turn.clone());
                visits.spawn(async move { visit(&behind, &turn, stream).await });
            }
        });
        Ok(Self { task, socket })
    }
}

async fn visit(behind: &Behind, turn: &Mutex<()>, stream: UnixStream) {
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader.take(LINE));
    let mut asked = String::new();
    let read = reader.read_line(&mut asked).await;
    let no = |why: &str| VisitorMessage::No {
        why: why.to_owned(),
    };
    let mut picture = Vec::new();
    let told = match (read, serde_json::from_str(&asked)) {
        _ if pid.is_none_or(keeper::is_below_a_keeper) => {
            no("a command of a run cannot take a screen over")
        }
        (Ok(_), Ok(VisitorRequest::TakeOver { by })) => match turn.try_lock() {
            Ok(_turn) => hand_out(behind, by, &mut reader, &writer).await,
            Err(_) => no("another person has taken it over already"),
        },
        (Ok(_), Ok(VisitorRequest::Picture)) if turn.try_lock().is_err() => no(A_PERSON_HAS_IT),
        (Ok(_), Ok(VisitorRequest::Picture)) => {
            match (behind.screen.watch().await, turn.try_lock()) {
                (_, Err(_)) => no(A_PERSON_HAS_IT),
                (Some(taken), Ok(_)) => {
                    picture = taken.bytes;
                    VisitorMessage::Picture {
                        bytes: picture.len(),
                    }
                }
                (None, Ok(_)) => no("its screen gives no picture at this moment"),
            }
        }
        _ => no(
            "the run's process does not understand this request; is it another version of gyrus?",
        ),
    };
    // Whoever left does not wait for it.
    if writer.write_all(line(&told).as_bytes()).await.is_ok() {
        let _ = writer.write_all(&picture).await;
    }
}

fn line(told: &impl Serialize) -> String {
    let text = serde_json::to_string(told).unwrap_or_default();
    format!("{text}\n")
}

type VisitorLines = BufReader<tokio::io::Take<tokio::net::unix::OwnedReadHalf>>;

/// Hands the browser out until it is given back, and returns the message for the visitor.
async fn hand_out(
    behind: &Behind,
    by: Principal,
    reader: &mut VisitorLines,
    writer: &OwnedWriteHalf,
) -> VisitorMessage {
    let no = |why: String| VisitorMessage::No { why };
    let takeover = tokio::select! {
        begun = behind.takeovers.begin(by.clone()) => match begun {
            Ok(Some(takeover)) => takeover,
            Ok(None) => return no("the run is over".to_owned()),
            Err(error) => return no(error.to_string()),
        },
        () = let_go(reader) => return no("the request for the screen was withdrawn".to_owned()),
    };
    let reason = asked_for(behind).unwrap_or_default();
    let reason = reason.as_ref().map(|(_, reason)| reason.as_str());
    let taken = behind.screen.take_over(reason, |address| {
        // A line fits into an empty socket; whoever does not get it has closed the socket.
        let _ = writer.try_write(line(&VisitorMessage::At(address.to_owned())).as_bytes());
    });
    let (told, words) = tokio::select! {
        taken = taken => match taken {
            Ok(given) => (VisitorMessage::GivenBack { words: given.words.clone() }, given.words),
            Err(error) => (no(error.to_string()), None),
        },
        () = takeover.interrupted() => (no("the run was told to stop".to_owned()), None),
        () = let_go(reader) => (VisitorMessage::GivenBack { words: None }, None),
    };
    let said = match &told {
        VisitorMessage::GivenBack { .. } => say(behind, &by, words.as_deref()),
        _ => Ok(()),
    };
    match (takeover.end(words.as_deref()).await, said) {
        (Ok(()), Ok(())) => told,
        (Err(error), _) => no(error.to_string()),
        (_, Err(failure)) => no(failure.message),
    }
}

/// Waits until the other side has disconnected.
async fn let_go(reader: &mut VisitorLines) {
    let mut rest = [0; 64];
    while reader.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}

/// Passes the person's words on to the run: as the answer, if it asked them to take over.
fn say(behind: &Behind, by: &Principal, words: Option<&str>) -> Result<(), Failure> {
    let Behind { store, run, .. } = behind;
    if let Some((open, _)) = asked_for(behind)? {
        let answer = Answer::words(words.unwrap_or_default());
        return match approvals::answer(store, &open, by.clone(), answer) {
            // If it was answered meanwhile, that answer counts.
            Ok(()) | Err(ApprovalError::Void(_)) => Ok(()),
            Err(error) => Err(error.into()),
        };
    }
    let Some(words) = words else { return Ok(()) };
    // A child that works on the page hears it, and whoever sent it.
    for run in approvals::under_way(store, *run)? {
        let text = words.to_owned();
        match approvals::send(store, run, by.clone(), MessageBody::steer(text)) {
            Ok(()) | Err(ApprovalError::Over { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn asked_for(behind: &Behind) -> Result<Option<(OpenQuestion, String)>, Failure> {
    let store = &behind.store;
    for open in approvals::open(store, behind.run)? {
        for entry in store.reader(&log_name(open.run))?.entries_back()? {
            if let Ok(Entry::ToolCalled(called)) = gyrus_kernel::parse(&entry?)
                && called.effect == open.id.effect
            {
                if called.call.tool != HandOverCall::TOOL {
                    break;
                }
                let reason = called.call.arguments["text"].as_str();
                return Ok(Some((open, reason.unwrap_or_default().to_owned())));
            }
        }
    }
    Ok(None)
}
