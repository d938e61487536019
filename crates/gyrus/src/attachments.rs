//! Attachments of a goal: text files, pictures, standard input.

use std::{
    io::{self, Read},
    os::fd::AsFd,
    path::Path,
};

use gyrus_contract::{CommandOutcome, CommandSpec, Origin, Text};
use gyrus_kernel::Attachment;
use gyrus_process::{keeper::Keeper, open_regular};
use gyrus_tools::Clipboard;
use rustix::fs::FileType;

use gyrus_runtime::request::ContextFlags;

use crate::failure::Failure;
use gyrus_surfaces::console::put;

/// The longest text that comes with a goal, in bytes. A model would have to read all of it at
/// every step; a larger file is better named, so that tools can look into it.
const TEXT_LIMIT: u64 = 1 << 20;

/// The largest picture, in bytes: providers take no larger ones.
const PICTURE_LIMIT: u64 = 5 << 20;

/// Reads all attachments that the flags name. Standard input is read when it is asked for (`--file
/// -`), or when it is a file: what is a pipe for other reasons may never end.
pub(crate) fn read(flags: &ContextFlags, goal_is_stdin: bool) -> Result<Vec<Attachment>, Failure> {
    let mut given = Vec::new();
    let mut stdin_used = goal_is_stdin;
    for path in &flags.file {
        if ["-", "/dev/stdin"].map(Path::new).contains(&path.as_path()) {
            if std::mem::replace(&mut stdin_used, true) {
                return Err(Failure::usage("standard input can be read only once"));
            }
            given.push(stdin()?);
        } else {
            given.push(file(path)?);
        }
    }
    if !stdin_used {
        match kind_of_stdin() {
            Some(FileType::RegularFile) => given.push(stdin()?),
            Some(FileType::Fifo) if has_data() => put(
                "note: standard input is a pipe and was not read; to give it to the run: --file -\n",
            )?,
            _ => {}
        }
    }
    for path in &flags.image {
        given.push(picture(path)?);
    }
    Ok(given)
}

/// The text on the person's clipboard. Its origin is the tool that reads it for runs.
pub(crate) async fn clipboard(folder: &Path) -> Result<Attachment, Failure> {
    let unreachable = |why: String| Failure::usage(why).hint("leave --clipboard out");
    let command = Clipboard::new().reading(folder).map_err(unreachable)?;
    let outcome = read_clipboard(command).await?;
    let text = Clipboard::text_of(outcome).map_err(unreachable)?;
    let text = text.ok_or_else(|| unreachable("there is no text on the clipboard".to_owned()))?;
    let name = "clipboard".to_owned();
    Ok(Attachment::Text(Text::new(text, Origin::Tool { name })))
}

async fn read_clipboard(command: CommandSpec) -> Result<CommandOutcome, Failure> {
    let failed = |error| Failure::failed("the clipboard cannot be read").because(&error);
    let keeper = Keeper::start().map_err(failed)?;
    keeper.run(command).await.map_err(failed)
}

/// The picture on the person's clipboard.
pub(crate) async fn clipboard_picture(folder: &Path) -> Result<Attachment, Failure> {
    let command = Clipboard::new().reading_picture(folder);
    let outcome = read_clipboard(command.map_err(Failure::usage)?).await?;
    let bytes = Clipboard::picture_of(&outcome).ok_or_else(|| {
        let what = "there is no picture on the clipboard, or one that is too large";
        Failure::usage(what).hint("name a file: /image PATH")
    })?;
    picture_of(bytes, "the picture on the clipboard")
}

pub(crate) fn file(path: &Path) -> Result<Attachment, Failure> {
    let name = path.display();
    let file = open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => Failure::usage(format!("{name} is a folder"))
            .hint("name it in the goal: the run can list and read it"),
        io::ErrorKind::InvalidInput => Failure::usage(format!("{name} cannot be read"))
            .because(&error)
            .hint("give what a program writes by standard input: PROGRAM | gyrus … --file -"),
        _ => Failure::usage(format!("{name} cannot be read")).because(&error),
    })?;
    let text = text(file, &name.to_string())?;
    let origin = Origin::File {
        path: name.to_string(),
    };
    Ok(Attachment::Text(Text::new(text, origin)))
}

fn stdin() -> Result<Attachment, Failure> {
    let text = text(io::stdin().lock(), "standard input")?;
    Ok(Attachment::Text(Text::new(text, Origin::Stdin)))
}

fn text(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(TEXT_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("{name} cannot be read")).because(&error))?;
    if bytes.len() as u64 > TEXT_LIMIT {
        return Err(
            Failure::usage(format!("{name} is longer than {TEXT_LIMIT} bytes"))
                .hint("put it into the run's folder and name it in the goal"),
        );
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::usage(format!("{name} is not text in UTF-8"))
            .hint("give a picture with --image, or name the file in the goal")
    })
}

pub(crate) fn picture(path: &Path) -> Result<Attachment, Failure> {
    let name = path.display();
    let unreadable =
        |error: &io::Error| Failure::usage(format!("{name} cannot be read")).because(error);
    let mut file = open_regular(path).map_err(|error| unreadable(&error))?;
    let size = file.metadata().map_err(|error| unreadable(&error))?.len();
    if size > PICTURE_LIMIT {
        return Err(Failure::usage(format!(
            "{name} has {size} bytes; models take {PICTURE_LIMIT}"
        ))
        .hint("scale it down"));
    }
    let mut bytes = Vec::new();
    file.by_ref()
        .take(PICTURE_LIMIT)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    picture_of(bytes, &name.to_string())
}

pub(crate) fn picture_of(bytes: Vec<u8>, name: &str) -> Result<Attachment, Failure> {
    if bytes.len() as u64 > PICTURE_LIMIT {
        let size = bytes.len();
        let what = format!("{name} has {size} bytes; models take {PICTURE_LIMIT}");
        return Err(Failure::usage(what).hint("scale it down"));
    }
    let Some(header) = gyrus_tools::PictureHeader::read(&bytes) else {
        return Err(Failure::usage(format!("{name} is not a PNG, JPEG or WebP"))
            .hint("convert it, or give a text with --file"));
    };
    Ok(Attachment::Picture {
        media_type: header.media_type().to_owned(),
        width: header.width,
        height: header.height,
        bytes,
    })
}

fn kind_of_stdin() -> Option<FileType> {
    let stat = rustix::fs::fstat(io::stdin().as_fd()).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Whether something can be read from standard input without waiting.
fn has_data() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec::default();
    poll(&mut waiting, Some(&at_once)).is_ok() && waiting[0].revents().contains(PollFlags::IN)
}
