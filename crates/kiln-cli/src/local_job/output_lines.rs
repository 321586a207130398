//! What ranks print, line by line, with their rank before each line.
//!
//! A line is written in one piece. Bytes are not looked at, so that any encoding comes through. When the output cannot be written any more, because its reader has left or
//! there is no room, that is told once. What the ranks print until they have ended is read and dropped.

use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

/// A longer line is broken.
const MAX_LINE_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 16 << 10;

/// Where lines of all ranks go.
pub(super) struct LineSink<W> {
    state: Mutex<SinkState<W>>,
}

struct SinkState<W> {
    writer: W,
    is_closed: bool,
    failure: Option<io::Error>,
    tell: Option<Box<dyn FnOnce() + Send>>,
}

impl<W: Write> LineSink<W> {
    /// Lines go to the writer; `tell` is called when it fails.
    pub(super) fn new(writer: W, tell: impl FnOnce() + Send + 'static) -> Self {
        let tell: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(tell));
        Self { state: Mutex::new(SinkState { writer, is_closed: false, failure: None, tell }) }
    }

    /// Writes whole lines.
    fn write(&self, lines: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return;
        }
        if let Err(error) = state.writer.write_all(lines).and_then(|()| state.writer.flush()) {
            state.is_closed = true;
            state.failure = Some(error);
            state.tell.take().into_iter().for_each(|tell| tell());
        }
    }

    /// Why lines could not be written.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failure.take()
    }
}

/// Passes the lines of a rank on until its output ends. A last line without a line end gets one.
pub(super) fn pass_on<W: Write>(mut from: impl Read, rank: u32, to: &LineSink<W>) {
    let prefix = format!("[{rank}] ");
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut rest: Vec<u8> = Vec::new();
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        rest.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let end = match rest.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => at + 1,
            None if rest.len() >= MAX_LINE_BYTES => rest.len(),
            None => continue,
        };
        to.write(&prefixed(&prefix, rest.get(..end).unwrap_or_default()));
        rest.drain(..end);
    }
    if !rest.is_empty() {
        to.write(&prefixed(&prefix, &rest));
    }
}

fn prefixed(prefix: &str, lines: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.len() + 4 * prefix.len());
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(prefix.as_bytes());
        text.extend_from_slice(line);
    }
    if text.last() != Some(&b'\n') {
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(len);
            buffer[..len].copy_from_slice(now);
            self.0 = later;
            Ok(len)
        }
    }

    fn passed(bytes: &[u8], at_a_time: usize) -> Vec<u8> {
        let sink = LineSink::new(Vec::new(), || ());
        pass_on(Slow(bytes, at_a_time), 7, &sink);
        sink.state.into_inner().unwrap().writer
    }

    #[test]
    fn every_line_has_its_rank_however_it_arrives() {
        for at_a_time in [1, 3, 1000] {
            assert_eq!(
                passed(b"one\n\ntwo\xff\0\r\nlast", at_a_time),
                b"[7] one\n[7] \n[7] two\xff\0\r\n[7] last\n"
            );
            assert_eq!(passed(b"", at_a_time), b"");
            assert_eq!(passed(b"a\n", at_a_time), b"[7] a\n");
        }
    }

    #[test]
    fn a_line_without_end_is_broken_and_complete() {
        let long = vec![b'x'; 3 * MAX_LINE_BYTES];
        let text = passed(&long, CHUNK_BYTES);
        assert_eq!(text.iter().filter(|byte| **byte == b'x').count(), long.len());
        assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 3);
    }

    #[test]
    fn a_failure_is_told_once_and_the_output_is_read_to_its_end() {
        struct Closed(io::ErrorKind);
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for kind in [io::ErrorKind::BrokenPipe, io::ErrorKind::StorageFull] {
            let (told, tellings) = std::sync::mpsc::channel();
            let sink = LineSink::new(Closed(kind), move || told.send(()).unwrap());
            let mut bytes = Slow(b"a\nb\nc\n", 2);
            pass_on(&mut bytes, 0, &sink);
            assert!(bytes.0.is_empty());
            assert_eq!(sink.take_failure().unwrap().kind(), kind);
            assert_eq!(tellings.into_iter().count(), 1);
        }
    }
}
