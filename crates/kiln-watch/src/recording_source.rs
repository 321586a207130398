//! The file of a recording, read from any block on.

use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use kiln_trace::{ReadError, RecordingReader, TraceEvent, open_plain_file};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;
/// More than the start of a file has in any version.
const LONGEST_START: u64 = 64;
/// Bytes that tell a recording from another in the same file.
const FIRST_BYTES: u64 = 128;

/// A file, and how it begins: every part of it is read as if it were the whole behind that.
#[derive(Clone, Debug)]
pub(crate) struct RecordingSource {
    path: PathBuf,
    start: Vec<u8>,
    /// The first bytes, as far as they are known: the first block of another recording has another checksum.
    first: Vec<u8>,
}

/// The start of a file, and behind it some of its blocks.
type StartAndBlocks = Chain<Cursor<Vec<u8>>, BufReader<Take<File>>>;

/// Reads a part of a file.
pub(crate) struct PartReader {
    reader: RecordingReader<StartAndBlocks>,
    /// What the reader's offsets are short of those in the file.
    shift: u64,
}

impl RecordingSource {
    /// Looks at the start of a file.
    ///
    /// # Errors
    /// No recording, one of another version, or a file that cannot be read.
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let start_bytes = RecordingReader::new(open_plain_file(path)?)?.offset();
        let mut start = Vec::new();
        open_plain_file(path)?.take(start_bytes.min(LONGEST_START)).read_to_end(&mut start)?;
        Ok(Self { path: path.to_owned(), first: start.clone(), start })
    }

    /// Where the first block begins.
    pub(crate) fn first_block(&self) -> u64 {
        self.start.len() as u64
    }

    /// Whether the file at the path begins as it did.
    pub(crate) fn has_same_beginning(&mut self) -> bool {
        let mut now = Vec::new();
        let read = open_plain_file(&self.path).and_then(|file| file.take(FIRST_BYTES).read_to_end(&mut now));
        let is_same = read.is_ok() && now.starts_with(&self.first);
        if is_same {
            self.first = now;
        }
        is_same
    }

    /// Reads from the block that begins at `begin` up to `end`.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn part(&self, begin: u64, end: u64) -> Result<PartReader, ReadError> {
        let mut file = open_plain_file(&self.path)?;
        file.seek(SeekFrom::Start(begin))?;
        let blocks = BufReader::with_capacity(BUFFER_BYTES, file.take(end.saturating_sub(begin)));
        let reader = RecordingReader::new(Cursor::new(self.start.clone()).chain(blocks))?;
        Ok(PartReader { reader, shift: begin.saturating_sub(self.first_block()) })
    }

    /// How long the file is.
    pub(crate) fn bytes(&self) -> io::Result<u64> {
        Ok(std::fs::metadata(&self.path)?.len())
    }
}

impl PartReader {
    /// Where in the file the block begins that the next event is in.
    pub(crate) fn offset(&self) -> u64 {
        self.reader.offset().saturating_add(self.shift)
    }

    /// Bytes that were left out so far.
    pub(crate) fn skipped_bytes(&self) -> u64 {
        self.reader.skipped_bytes()
    }

    /// The next event; damage has the offset in the file.
    ///
    /// # Errors
    /// A damaged block, once; what the operating system says.
    pub(crate) fn next_event(&mut self) -> Result<Option<TraceEvent<'_>>, ReadError> {
        let shift = self.shift;
        self.reader.next_event().map_err(|error| match error {
            ReadError::Damaged { offset, what } => {
                ReadError::Damaged { offset: offset.saturating_add(shift), what }
            }
            other => other,
        })
    }
}
