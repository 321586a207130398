//! What the details of an event say.
//!
//! Texts are kept once by each track, and numbers stand apart from them, so that a wait costs few bytes: the tag and the stream of many waits
//! are the same, and block and submission differ.

use std::borrow::Cow;

use crate::record::{LaunchSize, StreamWaitRecord, WaitReason};

/// A line of the details.
#[derive(Clone, Copy)]
pub(super) enum Note<'a> {
    Submission(u64),
    /// What kind of work it is, in words.
    Kind(&'a str),
    Bytes(u64),
    /// The shape of a launch, as [`size_words`] says it.
    Size(&'a str),
    /// The tag of the allocation that it was for.
    Tag(&'a str),
    /// What the n-th wait of a submission is about, from 1.
    Wait(u32, WaitNote<'a>),
    Ranks(u64),
    Rank(u64),
    Communicator(&'a str),
    Kernel(&'a str),
    Finding(&'a str),
}

/// A line of the details of a wait.
#[derive(Clone, Copy)]
pub(super) enum WaitNote<'a> {
    For(&'a str),
    Block(u64),
    Submission(u64),
    /// The event in between covers later work, too.
    Covers(u64),
}

/// What a line says.
pub(super) enum NoteValue<'a> {
    Number(u64),
    Text(&'a str),
}

impl<'a> Note<'a> {
    /// What it is called. Of two lines with one name, readers show one.
    pub(super) fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Submission(_) => "submission".into(),
            Self::Kind(_) => "kind".into(),
            Self::Bytes(_) => "bytes".into(),
            Self::Size(_) => "launch".into(),
            Self::Tag(_) => "for".into(),
            Self::Wait(1, note) => note.name().into(),
            Self::Wait(wait, note) => format!("{} ({wait})", note.name()).into(),
            Self::Ranks(_) => "ranks".into(),
            Self::Rank(_) => "rank".into(),
            Self::Communicator(_) => "communicator".into(),
            Self::Kernel(_) => "kernel".into(),
            Self::Finding(_) => "finding".into(),
        }
    }

    /// What it says.
    pub(super) fn value(&self) -> NoteValue<'a> {
        match *self {
            Self::Submission(number)
            | Self::Bytes(number)
            | Self::Ranks(number)
            | Self::Rank(number)
            | Self::Wait(
                _,
                WaitNote::Block(number) | WaitNote::Submission(number) | WaitNote::Covers(number),
            ) => NoteValue::Number(number),
            Self::Kind(text)
            | Self::Communicator(text)
            | Self::Kernel(text)
            | Self::Finding(text)
            | Self::Size(text)
            | Self::Tag(text)
            | Self::Wait(_, WaitNote::For(text)) => NoteValue::Text(text),
        }
    }
}

impl WaitNote<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::For(_) => "waits for",
            Self::Block(_) => "waits for block",
            Self::Submission(_) => "waits for submission",
            Self::Covers(_) => "waits for all up to submission",
        }
    }
}

/// The shape of a launch.
pub(super) fn size_words(size: &LaunchSize) -> String {
    let three = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let shared = match size.shared_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} bytes of shared memory"),
    };
    format!("grid {}, block {}{shared}", three(size.grid), three(size.block))
}

/// Why a work waits; nothing where that is not known. It is a part of the text that is kept once, so that it costs no bytes of a wait.
fn reason_words(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::ReadAfterWrite => "it is read here",
        WaitReason::WriteAfterWrite => "it is overwritten here",
        WaitReason::WriteAfterRead => "it is overwritten here, and was read there",
        WaitReason::Allocation => "it was allocated there",
        WaitReason::Asked => "the program asked for that",
        WaitReason::Unknown => "",
    }
}

/// A wait whose waiter has not come yet.
#[derive(Default)]
pub(super) struct OpenWait {
    words: String,
    block: Option<u64>,
    submission: u64,
    covers: Option<u64>,
}

impl OpenWait {
    pub(super) fn of(wait: &StreamWaitRecord<'_>) -> Self {
        let stream = wait.writer.stream;
        let of = if stream.device == wait.waiter.stream.device {
            stream.to_string()
        } else {
            format!("{stream} of device {}", stream.device)
        };
        let what = match wait.block {
            Some(block) if !block.tag.is_empty() => format!("{}, on {of}", block.tag),
            Some(_) => format!("memory without a tag, on {of}"),
            None => format!("work on {of}"),
        };
        let line = wait.line.map(|line| format!(" at {line}")).unwrap_or_default();
        let words = match reason_words(wait.reason) {
            "" => what,
            reason => format!("{what}: {reason}{line}"),
        };
        Self {
            words,
            block: wait.block.map(|block| block.block),
            submission: wait.writer.number,
            covers: (wait.covers > wait.writer.number).then_some(wait.covers),
        }
    }

    /// What the details of its waiter say of it, as the n-th wait.
    pub(super) fn notes(&self, number: u32) -> impl Iterator<Item = Note<'_>> {
        let all = [
            Some(WaitNote::For(&self.words)),
            self.block.map(WaitNote::Block),
            Some(WaitNote::Submission(self.submission)),
            self.covers.map(WaitNote::Covers),
        ];
        all.into_iter().flatten().map(move |note| Note::Wait(number, note))
    }
}
