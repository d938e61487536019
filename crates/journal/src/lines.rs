//! Lines of a file, forwards and backwards, in bounded memory.

use std::{io, sync::Arc};

use crate::{DiskFile, line::LINE_LIMIT};

/// Size of the first read in bytes; each read doubles it.
const FIRST_BLOCK: usize = 4 << 10;

/// Maximum size of a read in bytes.
const BLOCK: usize = 256 << 10;

/// The next piece of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinePiece<'a> {
    /// A line, without its newline.
    Line(&'a [u8]),
    /// The file ends without a newline, after at least one byte.
    Cut,
    /// The maximum length of a line is exceeded without a newline.
    TooLong,
    /// The end of the file, or of the part that counts.
    End,
}

/// Reads lines forwards. A line that was returned by [`LogLineReader::peek`] is returned again
/// until [`LogLineReader::advance`]; at the end, later calls see what was added to the file.
#[derive(Debug)]
pub(crate) struct LogLineReader {
    file: Arc<dyn DiskFile>,
    /// Offset of `buffer` in the file.
    position: u64,
    /// Offset at which the part of the file that counts ends.
    limit: u64,
    buffer: Vec<u8>,
    /// Offset of the next line in `buffer`.
    start: usize,
    /// Length of the line last peeked at, with its newline.
    peeked: usize,
    /// Size of the next read in bytes.
    block: usize,
}

impl LogLineReader {
    /// Reads the lines of `file` between two offsets, the first of which begins a line.
    pub(crate) fn new(file: Arc<dyn DiskFile>, offset: u64, limit: u64) -> Self {
        Self {
            file,
            position: offset,
            limit,
            buffer: Vec::new(),
            start: 0,
            peeked: 0,
            block: FIRST_BLOCK,
        }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.position + self.start as u64
    }

    /// Sets the offset at which the part that counts ends.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        let within = usize::try_from(limit.saturating_sub(self.position)).unwrap_or(usize::MAX);
        if within < self.start {
            self.position = self.offset();
            self.start = 0;
            self.buffer.clear();
        } else {
            self.buffer.truncate(within);
        }
    }

    /// Returns the next line without advancing.
    pub(crate) fn peek(&mut self) -> io::Result<LinePiece<'_>> {
        let mut searched = 0;
        self.peeked = 0;
        loop {
            let rest = &self.buffer[self.start..];
            if let Some(length) = memchr::memchr(b'\n', &rest[searched..]) {
                let length = searched + length;
                self.peeked = length + 1;
                if length > LINE_LIMIT {
                    return Ok(LinePiece::TooLong);
                }
                return Ok(LinePiece::Line(
                    &self.buffer[self.start..self.start + length],
                ));
            }
            searched = rest.len();
            if searched > LINE_LIMIT {
                return Ok(LinePiece::TooLong);
            }
            if !self.fill()? {
                return Ok(if searched == 0 {
                    LinePiece::End
                } else {
                    LinePiece::Cut
                });
            }
        }
    }

    /// Advances behind the line last peeked at.
    pub(crate) fn advance(&mut self) {
        self.start += self.peeked;
        self.peeked = 0;
    }

    /// Returns the next line and advances behind it.
    pub(crate) fn next(&mut self) -> io::Result<LinePiece<'_>> {
        self.peek()?;
        let (start, length) = (self.start, self.peeked);
        self.advance();
        if length == 0 {
            return self.peek();
        }
        Ok(LinePiece::Line(&self.buffer[start..start + length - 1]))
    }

    /// Advances to the next line without holding the present one in memory. Returns `false` if the
    /// file ends first.
    pub(crate) fn skip(&mut self) -> io::Result<bool> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[self.start..]) {
                self.start += length + 1;
                return Ok(true);
            }
            self.start = self.buffer.len();
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    /// Reads another block; returns `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.position += self.start as u64;
            self.start = 0;
        }
        let end = self.position + self.buffer.len() as u64;
        let room = usize::try_from(self.limit.saturating_sub(end))
            .unwrap_or(BLOCK)
            .min(self.block);
        self.block = (self.block * 2).min(BLOCK);
        let kept = self.buffer.len();
        self.buffer.resize(kept + room, 0);
        let read = read_at(self.file.as_ref(), &mut self.buffer[kept..], end);
        self.buffer.truncate(kept + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }
}

/// Reads lines backwards from an offset at which a line ends, down to a floor at which one begins.
#[derive(Debug)]
pub(crate) struct LinesBack {
    file: Arc<dyn DiskFile>,
    floor: u64,
    /// Offset of `buffer` in the file.
    position: u64,
    /// The bytes between `position` and the end of the next line, unless that line is too long.
    buffer: Vec<u8>,
    /// Whether the next line is longer than allowed, so that its end was dropped.
    too_long: bool,
    /// Size of the next read in bytes.
    block: usize,
}

impl LinesBack {
    pub(crate) fn new(file: Arc<dyn DiskFile>, floor: u64, end: u64) -> Self {
        Self {
            file,
            floor,
            position: end,
            buffer: Vec::new(),
            too_long: false,
            block: FIRST_BLOCK,
        }
    }

    /// Returns the previous line without its newline, and its offset. Bytes at the very end without
    /// a newline count as a line; a line that is too long is returned empty. Returns `None` at the
    /// floor.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        loop {
            let ended = !self.too_long && self.buffer.last() == Some(&b'\n');
            let text = &self.buffer[..self.buffer.len() - usize::from(ended)];
            let at_floor = self.position <= self.floor;
            let newline = memchr::memrchr(b'\n', text).map(|at| at + 1);
            if let Some(start) = newline.or(at_floor.then_some(0)) {
                if self.buffer.is_empty() && !self.too_long {
                    return Ok(None);
                }
                let too_long = std::mem::take(&mut self.too_long);
                let line = if too_long {
                    Vec::new()
                } else {
                    text[start..].to_vec()
                };
                self.buffer.truncate(start);
                return Ok(Some((self.position + start as u64, line)));
            }
            if text.len() > LINE_LIMIT {
                self.too_long = true;
            }
            if self.too_long {
                self.buffer.clear();
            }
            self.grow()?;
        }
    }

    /// Reads at least as many bytes as are buffered, so that a long line costs linear time.
    fn grow(&mut self) -> io::Result<()> {
        let want = self.buffer.len().max(self.block) as u64;
        self.block = (self.block * 2).min(BLOCK);
        let start = self.position.saturating_sub(want).max(self.floor);
        let length = usize::try_from(self.position - start).unwrap_or(BLOCK);
        let mut buffer = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match read_at(
                self.file.as_ref(),
                &mut buffer[filled..],
                start + filled as u64,
            )? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        buffer.extend_from_slice(&self.buffer);
        self.buffer = buffer;
        self.position = start;
        Ok(())
    }
}

fn read_at(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, os::disk::OsDisk, segment::write_all};

    /// Checks that a text is read the same in both directions. A line that is too long is expected
    /// as `None`.
    fn check(text: &[u8], expected: &[Option<&[u8]>]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let file = OsDisk.create_new(&path).unwrap();
        write_all(file.as_ref(), text).unwrap();
        let file: Arc<dyn DiskFile> = Arc::from(OsDisk.open(&path).unwrap());

        let mut back = LinesBack::new(Arc::clone(&file), 0, text.len() as u64);
        let mut found = Vec::new();
        while let Some((offset, line)) = back.next().unwrap() {
            let at = usize::try_from(offset).unwrap();
            assert!(text[at..].starts_with(&line));
            assert!(back.buffer.capacity() < 4 * LINE_LIMIT, "memory is bounded");
            found.push(line);
        }
        found.reverse();
        let given: Vec<&[u8]> = expected.iter().map(|line| line.unwrap_or(b"")).collect();
        assert!(
            found == given,
            "{} lines backwards, not {}",
            found.len(),
            given.len()
        );

        let mut forwards = LogLineReader::new(file, 0, text.len() as u64);
        for line in expected {
            match (forwards.peek().unwrap(), line) {
                (LinePiece::Line(found), Some(line)) => {
                    assert!(found == *line);
                    forwards.advance();
                }
                (LinePiece::Cut, Some(_)) => return,
                (LinePiece::TooLong, None) => drop(forwards.skip().unwrap()),
                (piece, _) => panic!("{:?}", std::mem::discriminant(&piece)),
            }
            assert!(
                forwards.buffer.capacity() < 4 * LINE_LIMIT,
                "memory is bounded"
            );
        }
        assert_eq!(forwards.peek().unwrap(), LinePiece::End);
    }

    #[test]
    fn lines_are_read_both_ways_in_bounded_memory() {
        check(b"", &[]);
        check(b"a\n", &[Some(b"a")]);
        check(b"a\n\nb", &[Some(b"a"), Some(b""), Some(b"b")]);
        let long = vec![b'x'; 300_000];
        check(
            &[&long, b"\nb\n".as_slice()].concat(),
            &[Some(&long), Some(b"b")],
        );
        let endless = vec![b'x'; 5 * LINE_LIMIT];
        check(
            &[b"a\n", &endless[..], b"\nb\n"].concat(),
            &[Some(b"a"), None, Some(b"b")],
        );
        check(&[&endless[..], b"\nb\n"].concat(), &[None, Some(b"b")]);
    }
}
