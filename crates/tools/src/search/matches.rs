//! Matches of a search, and their bounded text.

use std::{fmt::Write as _, fs::File, io};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use gyrus_contract::{SearchMode, SearchResult};
use gyrus_text::counted;

use super::TimedFile;
use crate::background::Deadline;

/// Maximum bytes of text in an answer; the search ends with the file that exceeds it.
const MAX_TEXT_BYTES: usize = 48 * 1024;

/// Maximum number of bytes of one line in the output.
const MAX_LINE_BYTES: usize = 400;

/// Maximum number of bytes of a long line before the match.
const BEFORE_MATCH_BYTES: usize = 100;

/// Maximum bytes of a line; a file with a longer one is left out: it is data, and takes long to
/// search.
const MAX_BUFFER_BYTES: usize = 1024 * 1024;

pub(super) struct Matches {
    pattern: RegexMatcher,
    searcher: Searcher,
    mode: SearchMode,
    /// Maximum number of lines in mode `Lines`, otherwise of files.
    limit: usize,
    text: String,
    lines: u64,
    files: Vec<String>,
    searched: usize,
    binary: usize,
    /// Number of files whose lines are too long.
    long_lines: usize,
    pub(super) too_large: usize,
    pub(super) unreadable: usize,
    timed_out: bool,
}

impl Matches {
    pub(super) fn new(
        pattern: RegexMatcher,
        mode: SearchMode,
        context: usize,
        limit: usize,
    ) -> Self {
        let context = if mode == SearchMode::Lines {
            context
        } else {
            0
        };
        let searcher = SearcherBuilder::new()
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_BUFFER_BYTES))
            .build();
        Self {
            pattern,
            searcher,
            mode,
            limit,
            text: String::new(),
            lines: 0,
            files: Vec::new(),
            searched: 0,
            binary: 0,
            long_lines: 0,
            too_large: 0,
            unreadable: 0,
            timed_out: false,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        let count = match self.mode {
            SearchMode::Lines => usize::try_from(self.lines).unwrap_or(usize::MAX),
            SearchMode::Files | SearchMode::Count => self.files.len(),
        };
        count >= self.limit || self.text.len() >= MAX_TEXT_BYTES || self.timed_out
    }

    pub(super) fn search(&mut self, name: &str, file: File, deadline: &Deadline) {
        let mut in_file = InFile {
            pattern: &self.pattern,
            most_lines: match self.mode {
                SearchMode::Lines => self.limit as u64 - self.lines,
                SearchMode::Files => 1,
                SearchMode::Count => u64::MAX,
            },
            most_bytes: MAX_TEXT_BYTES.saturating_sub(self.text.len()),
            shows_lines: self.mode == SearchMode::Lines,
            text: String::new(),
            lines: 0,
            is_binary: false,
        };
        let file = TimedFile::new(file, deadline);
        let searched = self
            .searcher
            .search_reader(&self.pattern, file, &mut in_file);
        let InFile {
            text,
            lines,
            is_binary,
            ..
        } = in_file;
        match searched {
            Ok(()) if is_binary => self.binary += 1,
            Ok(()) => self.searched += 1,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => self.timed_out = true,
            // The searcher reports its limit only in the message.
            Err(error) if error.to_string().contains("limit") => self.long_lines += 1,
            Err(_) => self.unreadable += 1,
        }
        // Text before a NUL byte belongs to a binary file too.
        if lines == 0 || is_binary {
            return;
        }
        self.files.push(name.to_owned());
        self.lines += lines;
        let _ = match self.mode {
            SearchMode::Lines if self.files.len() > 1 => write!(self.text, "\n{name}\n{text}"),
            SearchMode::Lines => write!(self.text, "{name}\n{text}"),
            SearchMode::Files => writeln!(self.text, "{name}"),
            SearchMode::Count => writeln!(self.text, "{lines}  {name}"),
        };
    }

    pub(super) fn into_value(self) -> SearchResult {
        SearchResult {
            text: self.text,
            lines: self.lines,
            files: self.files,
        }
    }

    pub(super) fn text(&self) -> String {
        let Self {
            lines,
            files,
            searched,
            ..
        } = self;
        let files = files.len();
        let matches = match (self.mode, lines, files) {
            (SearchMode::Files, _, 1) | (SearchMode::Lines | SearchMode::Count, 1, _) => "matches",
            _ => "match",
        };
        let (files, searched) = (counted(files, "file"), counted(*searched, "file"));
        let mut text = self.text.clone();
        let found = match self.mode {
            SearchMode::Files => format!("{files} {matches}"),
            SearchMode::Lines | SearchMode::Count => {
                format!("{} in {files} {matches}", counted(*lines, "line"))
            }
        };
        if self.lines == 0 {
            let _ = writeln!(text, "(no match; {searched} searched)");
        } else if self.timed_out {
            let _ = writeln!(text, "[{found} so far]");
        } else if self.is_full() {
            let _ = writeln!(
                text,
                "[{found} so far, and the search stopped there; narrow it, or raise `max_matches`]"
            );
        } else {
            let _ = writeln!(text, "[{found}; {searched} searched]");
        }
        if self.timed_out {
            text.push_str("[broken off, as time was up; search a folder further down]\n");
        }
        let mut left_out = Vec::new();
        for (count, what) in [
            (self.binary, "binary"),
            (self.too_large, "very large"),
            (self.long_lines, "with very long lines"),
            (self.unreadable, "not readable"),
        ] {
            if count > 0 {
                left_out.push(format!("{count} {what}"));
            }
        }
        if !left_out.is_empty() {
            let _ = writeln!(text, "[files not searched: {}]", left_out.join(", "));
        }
        text
    }
}

struct InFile<'a> {
    pattern: &'a RegexMatcher,
    most_lines: u64,
    most_bytes: usize,
    shows_lines: bool,
    text: String,
    lines: u64,
    is_binary: bool,
}

impl InFile<'_> {
    fn push(&mut self, number: Option<u64>, mark: char, line: &[u8], matched_at: usize) {
        let line = line.trim_ascii_end();
        let line_length = line.len();
        // Wide enough for most files, so that lines stay in columns.
        let _ = write!(self.text, "{:>5}{mark} ", number.unwrap_or_default());
        let start = if line_length <= MAX_LINE_BYTES {
            0
        } else {
            // The match may be in the white space at the end, which is not shown.
            matched_at
                .saturating_sub(BEFORE_MATCH_BYTES)
                .min(line_length)
        };
        let end = (start + MAX_LINE_BYTES).min(line_length);
        if start > 0 {
            let _ = write!(self.text, "[{start} bytes …] ");
        }
        self.text
            .push_str(&String::from_utf8_lossy(whole_characters(
                &line[start..end],
            )));
        if end < line_length {
            let _ = write!(self.text, " [… {} more bytes]", line_length - end);
        }
        self.text.push('\n');
    }
}

/// Removes halves of characters at both ends, which a cut left.
fn whole_characters(mut bytes: &[u8]) -> &[u8] {
    let is_inner = |byte: &u8| (0x80..0xc0).contains(byte);
    for _ in 0..3 {
        match bytes.split_first() {
            Some((first, rest)) if is_inner(first) => bytes = rest,
            _ => break,
        }
    }
    match bytes.utf8_chunks().last() {
        Some(chunk) if !chunk.invalid().is_empty() => &bytes[..bytes.len() - chunk.invalid().len()],
        _ => bytes,
    }
}

impl Sink for InFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.lines += 1;
        if self.shows_lines {
            let line = found.bytes();
            let at = self.pattern.find(line).ok().flatten();
            let at = at.map_or(0, |found| found.start());
            self.push(found.line_number(), ':', line, at);
        }
        Ok(self.lines < self.most_lines && self.text.len() < self.most_bytes)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        self.push(found.line_number(), '-', found.bytes(), 0);
        Ok(self.text.len() < self.most_bytes)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.text.push_str("   --\n");
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}
