//! The tool `read`: shows a file, or the text of a PDF or a notebook, with numbered lines, a picture, or
//! the entries of a folder.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::Path,
};

use gyrus_contract::{
    PathList, ReadCall, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool,
};
use rustix::{
    fs::{Access, AtFlags, FileType, accessat},
    io::Errno,
};
use serde::Serialize;

use crate::{failure::ToolFailure, listing, notebook, picture, place::AccessPlace};

/// Maximum size of the text of one call, including line numbers, in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Maximum size of a line kept, in bytes: data on one endless line must not crowd out the rest.
const MAX_LINE_BYTES: usize = 2_000;

/// Maximum size of a line's part from a column on, in bytes.
const MAX_PART_BYTES: usize = 16 * 1024;

/// Maximum bytes of a line as shown: each byte may become a replacement character of three, plus
/// the number and the note about the cut.
const MAX_SHOWN_LINE_BYTES: usize = 3 * MAX_LINE_BYTES + 200;

/// Maximum bytes read of a file in one call, to find a line or count them all.
const MAX_SCAN_BYTES: u64 = 64 * 1024 * 1024;

/// Number of bytes at the start of a file checked for a NUL byte, the sign of a binary file.
const SNIFFED_BYTES: usize = 8 * 1024;

/// Reads a file, shows a picture or lists a folder.
pub struct Read;

impl TypedTool for Read {
    type Arguments = ReadCall;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Reads("path".to_owned())]
    }

    async fn run(
        &self,
        arguments: ReadCall,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let ReadCall {
            offset_line,
            limit_lines,
            column,
            ..
        } = arguments;
        let place = AccessPlace::of(call, site.workspace())?;
        let (opened, stat) = place.open()?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let (text, paths) =
                listing::list(&opened, place.given()).map_err(|error| place.error(error))?;
            return Ok(ToolOutput::read(text).with_value(&PathList { paths }));
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        // A file may grow while it is read; one without a size, as in /proc, may be endless.
        let mut file =
            BufReader::with_capacity(SNIFFED_BYTES, File::from(opened).take(MAX_SCAN_BYTES));
        let failed =
            |error: io::Error| place.error(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let start = file.fill_buf().map_err(failed)?;
        if start.is_empty() {
            return Ok(ToolOutput::read("(the file is empty)").with_value(&FileText::default()));
        }
        let converted = if start.starts_with(gyrus_pdf::MAGIC) {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            match pdf_text(bytes).await {
                Ok(text) => Some(text),
                Err(why) => {
                    let described = format!("(a PDF document, {size} bytes: {why})");
                    return Ok(ToolOutput::read(described));
                }
            }
        } else if picture::ImageKind::of(start).is_some() || start.contains(&0) {
            let described = format!("(not text: {}, {size} bytes)", kind(start));
            let mut bytes = Vec::new();
            if picture::ImageKind::of(start).is_some() {
                let mut whole = (&mut file).take(picture::MAX_BYTES + 1);
                whole.read_to_end(&mut bytes).map_err(failed)?;
            }
            return picture_or(described, &bytes, site);
        } else if place.given().ends_with(".ipynb") && start.starts_with(b"{") {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            Some(notebook::text_of(&bytes))
        } else {
            None
        };
        let first = offset_line.unwrap_or(1).max(1);
        let count = limit_lines
            .unwrap_or(ReadCall::MAX_LINES)
            .clamp(1, ReadCall::MAX_LINES);
        let column = column.unwrap_or(1).max(1);
        let excerpt = match &converted {
            Some(text) => LineExcerpt::take(&mut text.as_bytes(), first, count, column),
            None => LineExcerpt::take(&mut file, first, count, column),
        };
        let excerpt = excerpt.map_err(failed)?;
        let was_cut = converted.is_none() && file.get_ref().limit() == 0;
        let value = excerpt.value(first, was_cut);
        let text =
            excerpt.render(first, was_cut) + &place.note(call) + &nearer_guidelines(&place, site);
        Ok(ToolOutput::read(text).with_value(&value))
    }
}

async fn pdf_text(bytes: Vec<u8>) -> Result<String, String> {
    let reading = tokio::task::spawn_blocking(move || gyrus_pdf::text_of(&bytes));
    reading.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// The file with guidelines for agents in a folder.
const GUIDELINES: &str = "AGENTS.md";

/// Returns a note about guidelines in the folders between the workspace and the place, which the run
/// was not given and has not read; empty if there are none.
fn nearer_guidelines(place: &AccessPlace<'_>, site: &dyn Site) -> String {
    let folders = place.folders_above();
    // The workspace's own came with the goal.
    let unread = folders.iter().skip(1).filter_map(|(folder, below)| {
        let depth = below.components().count();
        let path = place
            .in_workspace()?
            .ancestors()
            .nth(depth)?
            .join(GUIDELINES);
        let is_there = accessat(folder, GUIDELINES, Access::EXISTS, AtFlags::empty()).is_ok();
        let is_known = site.is_known(&site.workspace().join(&path));
        (is_there && !is_known && below != Path::new(GUIDELINES)).then_some(path)
    });
    let notes = unread.map(|path| {
        let path = path.to_string_lossy();
        let path = gyrus_text::one_line(&path);
        format!(
            "\n[`{path}` says how to work in this folder; read it before you change something here]"
        )
    });
    notes.collect()
}

/// Returns the picture in these bytes, or the description if they are not a picture that can be
/// shown.
fn picture_or(described: String, bytes: &[u8], site: &dyn Site) -> Result<ToolOutput, ToolFailure> {
    if bytes.len() as u64 > picture::MAX_BYTES {
        let most = picture::MAX_BYTES >> 20;
        return Ok(ToolOutput::read(format!(
            "{described}\n[pictures over {most} MB are not shown; scale it down in the shell]"
        )));
    }
    let Some(header) = picture::PictureHeader::read(bytes) else {
        return Ok(ToolOutput::read(described));
    };
    let (words, image) = picture::keep(header, bytes, site)?;
    Ok(ToolOutput {
        images: image.into_iter().collect(),
        ..ToolOutput::read(words)
    })
}

/// Returns the probable type of a file that is not text, by its first bytes.
fn kind(start: &[u8]) -> &'static str {
    if let Some(kind) = picture::ImageKind::of(start) {
        return match kind {
            picture::ImageKind::Png => "a PNG image",
            picture::ImageKind::Jpeg => "a JPEG image",
            picture::ImageKind::WebP => "a WebP image",
            picture::ImageKind::Gif => "a GIF image",
        };
    }
    let known: [(&[u8], &str); 7] = [
        (b"PK\x03\x04", "a ZIP archive or an office document"),
        (b"\x1f\x8b", "gzip data"),
        (b"\x28\xb5\x2f\xfd", "Zstandard data"),
        (b"\x7fELF", "an ELF program or library"),
        (b"SQLite format 3\0", "an SQLite database"),
        (
            b"\xff\xfe",
            "UTF-16 text, which `iconv -f UTF-16` in the shell converts",
        ),
        (
            b"\xfe\xff",
            "UTF-16 text, which `iconv -f UTF-16` in the shell converts",
        ),
    ];
    let found = known.iter().find(|(magic, _)| start.starts_with(magic));
    found.map_or("binary data", |(_, kind)| kind)
}

/// The value of a text file: the lines that were returned.
#[derive(Default, Serialize)]
struct FileText {
    /// The lines, unchanged; the rest of a line that is too long is missing.
    text: String,
    /// The number of the first line, counted from 1.
    first_line: u64,
    /// Number of lines of the file, counted as far as it was read.
    lines: u64,
    /// Whether `text` lacks a part of the file or of a line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_cut: bool,
}

/// Some lines of a file, and the number of all.
#[derive(Default)]
struct LineExcerpt {
    text: String,
    /// The lines without numbers and notes.
    plain: String,
    has_cut_line: bool,
    /// Number of lines in `text`.
    shown: u64,
    /// Number of lines that were read, including omitted ones.
    total: u64,
    replaced: bool,
}

impl LineExcerpt {
    /// Reads lines from `first` on; that one begins at `column`, counted in bytes from 1.
    fn take(file: &mut impl BufRead, first: u64, count: u64, column: u64) -> io::Result<Self> {
        let mut excerpt = Self::default();
        let mut full = false;
        loop {
            let column = if excerpt.total + 1 == first {
                column
            } else {
                1
            };
            let Some(line) = LinePart::next(file, column)? else {
                break;
            };
            excerpt.total += 1;
            full |= excerpt.shown == count
                || excerpt.text.len() + MAX_SHOWN_LINE_BYTES > MAX_TEXT_BYTES;
            if excerpt.total < first || full {
                continue;
            }
            excerpt.shown += 1;
            excerpt.push(&line);
        }
        Ok(excerpt)
    }

    fn push(&mut self, line: &LinePart) {
        let whole = line.whole_characters();
        let text = String::from_utf8_lossy(whole);
        self.replaced |= matches!(text, std::borrow::Cow::Owned(_));
        let _ = write!(self.text, "{:>6}\t{text}", self.total);
        self.plain.push_str(&text);
        let end = line.skipped + whole.len() as u64;
        self.has_cut_line |= line.skipped > 0 || end < line.length;
        if end < line.length {
            let (omitted, number, column) = (line.length - end, self.total, end + 1);
            let _ = write!(
                self.text,
                " [… {omitted} more bytes; this line goes on with offset_line {number}, column {column}]"
            );
        } else if line.skipped > 0 && whole.is_empty() {
            let _ = write!(self.text, "[this line has {} bytes]", line.length);
        }
        self.text.push('\n');
        if line.is_ended {
            self.plain.push('\n');
        }
    }

    fn value(&self, first: u64, was_cut: bool) -> FileText {
        FileText {
            text: self.plain.clone(),
            first_line: first,
            lines: self.total,
            is_cut: was_cut || self.has_cut_line || self.shown < self.total,
        }
    }

    fn render(self, first: u64, was_cut: bool) -> String {
        let Self {
            mut text,
            shown,
            total,
            replaced,
            ..
        } = self;
        let of = if was_cut {
            format!(
                "more than {total} (only {} MB were looked at)",
                MAX_SCAN_BYTES >> 20
            )
        } else {
            total.to_string()
        };
        let last = first.saturating_add(shown).saturating_sub(1);
        if shown == 0 && was_cut {
            let _ = write!(
                text,
                "(line {first} is too far away; the file has {of} lines; try "
            );
            let _ = write!(text, "`tail -n +{first} FILE | head -n 100` in the shell)");
        } else if shown == 0 {
            let _ = write!(
                text,
                "(line {first} is behind the end; the file has {})",
                gyrus_text::counted(total, "line")
            );
        } else if last < total || was_cut {
            let next = last.saturating_add(1);
            let _ = write!(
                text,
                "[lines {first} to {last} of {of}; go on with offset_line {next}]"
            );
        }
        if replaced {
            text.push_str("\n[what is not valid UTF-8 is shown as \u{fffd}]");
        }
        text
    }
}

/// A part of one line, without the line end.
#[derive(Default)]
struct LinePart {
    /// The stored bytes from the column on.
    start: Vec<u8>,
    /// Number of bytes before the part.
    skipped: u64,
    /// Length in the file, in bytes.
    length: u64,
    /// Whether a line break follows the part.
    is_ended: bool,
}

impl LinePart {
    fn next(file: &mut impl BufRead, column: u64) -> io::Result<Option<Self>> {
        let most = if column > 1 {
            MAX_PART_BYTES
        } else {
            MAX_LINE_BYTES
        };
        let mut line = Self::default();
        let mut any = false;
        loop {
            let buffer = match file.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                return Ok(any.then_some(line));
            }
            any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let left = usize::try_from(column - 1 - line.skipped).unwrap_or(usize::MAX);
            let before = left.min(part.len());
            line.skipped += before as u64;
            let kept = (most - line.start.len()).min(part.len() - before);
            line.start.extend_from_slice(&part[before..before + kept]);
            line.length += part.len() as u64;
            let used = part.len() + usize::from(end.is_some());
            file.consume(used);
            if end.is_some() {
                line.is_ended = true;
                return Ok(Some(line));
            }
        }
    }

    /// Returns the bytes without characters that were cut in half.
    fn whole_characters(&self) -> &[u8] {
        if self.length == self.skipped + self.start.len() as u64 {
            return &self.start;
        }
        match self.start.utf8_chunks().last() {
            // A valid beginning of up to three bytes at the very end is what a cut leaves.
            Some(chunk) => &self.start[..self.start.len() - chunk.invalid().len()],
            None => &self.start,
        }
    }
}
