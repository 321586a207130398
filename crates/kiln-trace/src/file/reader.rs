//! Reads a recording.

use std::io::{Read, Seek, SeekFrom};

use super::block_search::{Found, GivenBack};
use super::read_error::ReadError;
use crate::format::{
    BlockHead, FieldDecoder, FileStart, HEAD_BYTES, Malformed, Names, START_BYTES, split_names,
};
use crate::record::TraceEvent;

/// Reads events one by one, and holds one block of the file at a time.
pub struct RecordingReader<R> {
    from: GivenBack<R>,
    /// Where the next block begins; behind damage, where the damage does, if no block is found.
    next_block: u64,
    /// Where the block in `contents` begins.
    offset: u64,
    contents: Vec<u8>,
    names: Names,
    /// How much of the contents is read.
    at: usize,
    last_time: u64,
    state: State,
    skips_damage: bool,
    damaged_blocks: u64,
    skipped_bytes: u64,
    has_end_mark: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    Ended,
    Cut,
}

impl<R: Read> RecordingReader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// A file that is no recording, of another version, or ends at once.
    pub fn new(mut from: R) -> Result<Self, ReadError> {
        let mut start = [0; START_BYTES];
        let read = read_full(&mut from, &mut start)?;
        match FileStart::read(start.get(..read).unwrap_or_default()) {
            FileStart::Known => {}
            FileStart::Other(found) => return Err(ReadError::OtherVersion { found }),
            FileStart::Cut if read > 0 => return Err(ReadError::CutStart),
            FileStart::Cut => return Err(ReadError::Empty),
            FileStart::Foreign => return Err(ReadError::NoRecording),
            FileStart::Damaged => {
                return Err(ReadError::Damaged { offset: 0, what: "the start of the file" });
            }
        }
        Ok(Self {
            from: GivenBack::new(from),
            next_block: START_BYTES as u64,
            offset: 0,
            contents: Vec::new(),
            names: Names::new(),
            at: 0,
            last_time: 0,
            state: State::Reading,
            skips_damage: false,
            damaged_blocks: 0,
            skipped_bytes: 0,
            has_end_mark: false,
        })
    }

    /// The same, but damaged blocks are left out and counted.
    #[must_use]
    pub fn skipping_damage(self) -> Self {
        Self { skips_damage: true, ..self }
    }

    /// Places where damaged blocks were left out so far: one block each, or several where it is not known where each begins.
    pub fn damaged_blocks(&self) -> u64 {
        self.damaged_blocks
    }

    /// Bytes of the file that were left out so far.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// The next event; none at the end, and where the file is cut.
    ///
    /// # Errors
    /// A damaged block, once. The next call goes on with the next block that is whole. Where the length of the damaged one is not known, that is searched for by the
    /// checksums of heads and contents.
    pub fn next_event(&mut self) -> Result<Option<TraceEvent<'_>>, ReadError> {
        while self.at >= self.contents.len() {
            match self.read_block() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if self.skips_damage && error.is_damage() => self.damaged_blocks += 1,
                Err(error) => return Err(error),
            }
        }
        let rest = self.contents.get(self.at..).unwrap_or_default();
        let mut from = FieldDecoder::new(&self.contents, rest, &self.names, self.last_time);
        match TraceEvent::decode(&mut from) {
            Ok(event) => {
                (self.at, self.last_time) = (from.at(), from.last_time());
                match event {
                    TraceEvent::End(_) => self.has_end_mark = true,
                    // Another runtime of the program, after the last had ended.
                    TraceEvent::Device(_) => self.has_end_mark = false,
                    _ => {}
                }
                Ok(Some(event))
            }
            // The checksum was right, so that no accident did this.
            Err(Malformed(what)) => {
                self.at = self.contents.len();
                Err(ReadError::Damaged { offset: self.offset, what })
            }
        }
    }

    /// Whether the file ended within a block, as that of a program does which was killed. Known at the end.
    pub fn is_cut(&self) -> bool {
        self.state == State::Cut
    }

    /// Whether the program ended its recording itself. Otherwise it was killed, crashed, ended without its exit handlers (`_exit`), or still runs.
    /// Known at the end.
    pub fn has_end_mark(&self) -> bool {
        self.has_end_mark
    }

    /// Where the block begins that the next event is in, as far as that is known.
    pub fn offset(&self) -> u64 {
        if self.at < self.contents.len() { self.offset } else { self.next_block }
    }

    /// Reads the next block; false if there is none.
    fn read_block(&mut self) -> Result<bool, ReadError> {
        self.contents.clear();
        self.at = 0;
        if self.state != State::Reading {
            return Ok(false);
        }
        self.offset = self.next_block;
        let mut head = [0; HEAD_BYTES];
        let read = read_full(&mut self.from, &mut head)?;
        if read < HEAD_BYTES {
            self.state = if read == 0 { State::Ended } else { State::Cut };
            return Ok(false);
        }
        let bytes = head;
        let Some(head) = BlockHead::read(&bytes) else {
            self.search(bytes.to_vec())?;
            return Err(ReadError::Damaged { offset: self.offset, what: "its length is not known" });
        };
        (&mut self.from).take(head.bytes.into()).read_to_end(&mut self.contents)?;
        if self.contents.len() < head.bytes as usize {
            self.contents.clear();
            self.state = State::Cut;
            return Ok(false);
        }
        if !head.fits(&self.contents) {
            let contents = std::mem::take(&mut self.contents);
            if self.is_block_next()? {
                self.skip(HEAD_BYTES as u64 + u64::from(head.bytes));
            } else {
                // Bytes are missing, or there are more of them.
                self.search([&bytes[..], &contents].concat())?;
            }
            return Err(ReadError::Damaged { offset: self.offset, what: "its checksum is not right" });
        }
        self.next_block += HEAD_BYTES as u64 + u64::from(head.bytes);
        self.last_time = 0;
        let begin = split_names(&self.contents, &mut self.names);
        // Who leaves damaged blocks out gets no event of them, so that all are looked at first.
        let whole = begin.and_then(|at| if self.skips_damage { self.check_events(at) } else { Ok(at) });
        match whole {
            Ok(at) => self.at = at,
            Err(Malformed(what)) => {
                self.contents.clear();
                self.skipped_bytes += HEAD_BYTES as u64 + u64::from(head.bytes);
                return Err(ReadError::Damaged { offset: self.offset, what });
            }
        }
        Ok(true)
    }

    /// Whether a block follows, or the file ends, perhaps within one.
    fn is_block_next(&mut self) -> Result<bool, ReadError> {
        let mut head = [0; HEAD_BYTES];
        let read = read_full(&mut self.from, &mut head)?;
        self.from.give_back(head.get(..read).unwrap_or_default().to_vec());
        Ok(read < HEAD_BYTES || BlockHead::read(&head).is_some())
    }

    /// Goes on with the next whole block. The bytes are what was read of the damaged one, from its beginning.
    fn search(&mut self, mut bytes: Vec<u8>) -> Result<(), ReadError> {
        match self.from.find_block(bytes.split_off(1))? {
            Found::Block(behind) => self.skip(1 + behind),
            Found::End(behind) => {
                self.skipped_bytes += 1 + behind;
                self.state = State::Ended;
            }
            Found::Cut(behind) => {
                self.skipped_bytes += 1 + behind;
                self.state = State::Cut;
            }
        }
        Ok(())
    }

    /// Leaves bytes out.
    fn skip(&mut self, bytes: u64) {
        self.next_block += bytes;
        self.skipped_bytes += bytes;
    }

    /// Reads all events of the block, which begin at a place, and returns that.
    fn check_events(&self, begin: usize) -> Result<usize, Malformed> {
        let mut from = FieldDecoder::new(
            &self.contents,
            self.contents.get(begin..).unwrap_or_default(),
            &self.names,
            self.last_time,
        );
        while from.at() < self.contents.len() {
            TraceEvent::decode(&mut from)?;
        }
        Ok(begin)
    }
}

impl<R: Read + Seek> RecordingReader<R> {
    /// Begins again with the first event.
    ///
    /// # Errors
    /// What the file says.
    pub fn rewind(&mut self) -> Result<(), ReadError> {
        self.from.restart().seek(SeekFrom::Start(START_BYTES as u64))?;
        self.contents.clear();
        self.at = 0;
        self.next_block = START_BYTES as u64;
        self.state = State::Reading;
        self.damaged_blocks = 0;
        self.skipped_bytes = 0;
        self.has_end_mark = false;
        Ok(())
    }
}

/// Reads until the buffer is full or the file ends; how many bytes came.
fn read_full(from: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
