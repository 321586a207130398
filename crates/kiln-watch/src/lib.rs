//! A page that shows a recording.
//!
//! ```text
//!   file ──► Follower ──► RecordingIndex ◄── WatchedRecording ◄── Router ◄── browser
//!            (thread)     rows, sums, pages    tile, work, find,    (a thread for
//!                         names, memory        memory, explain       each connection)
//! ```
//!
//! # The recording
//!
//! - It is read once, block by block, while it grows. What is kept is bounded: sums over buckets of time for each row, a table of where
//!   in the file each row, time and number is, memory by tag, and the first few hundred faults and findings.
//! - Of memory by address, the blocks that take most room in the picture of address and time are kept, a limited number; what the
//!   others cover is added up.
//! - What is seen closely is read again from the file: a tile reads a few pages of it, a work one or two.
//! - A file that is cut is shown up to its last whole block, a damaged block is left out and told, and a file that is replaced by
//!   another is read from its beginning.
//!
//! # The server
//!
//! - It listens on the loopback interface only. The address of the page has a random token; a request without it, or with a `Host` that
//!   is no name of the loopback interface, is answered with 403.
//! - Requests are `GET` without a body and at most 8 KiB. A client that sends or takes nothing is left after some seconds, and the oldest
//!   silent connection gives way to a new one.
//! - The page is one HTML document, and asks only the address it came from.
//!
//! # In reading order
//!
//! [`WatchServer`] with [`WatchOptions`], [`ExpectedFile`] and [`WatchError`]. [`WatchedRecording`] and what it answers: [`RecordingState`],
//! [`TimelineTile`], [`WorkDetails`], [`FoundName`], [`MemoryCurve`], [`BlockPicture`]. [`WatchedJob`] of [`WatchedFiles`]: the recordings of
//! several ranks on one time axis, with [`JobState`].
//!
//! ```
//! use kiln_trace::{RecordingWriter, StartRecord, TraceEvent};
//! use kiln_watch::{WatchOptions, WatchServer};
//!
//! # let file = std::env::temp_dir().join(format!("kiln-watch-{}.kiln", std::process::id()));
//! let mut writer = RecordingWriter::new(std::fs::File::create(&file)?)?;
//! writer.push(&TraceEvent::Start(StartRecord { program: "train", ..StartRecord::default() }))?;
//! writer.finish()?;
//!
//! let server = WatchServer::start(&file, &WatchOptions::default())?;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! server.recording().read_all()?;
//! assert_eq!(server.recording().state().program, "train");
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod block_axis;
mod block_map;
mod block_picture;
mod bucket;
mod bucket_store;
mod collective_totals;
mod decoded_page;
mod device_facts;
mod explained;
mod file_pattern;
mod finding_note;
mod follower;
mod gap_state;
mod heap_change_note;
mod host_gap;
mod memory_series;
mod name_search;
mod name_table;
mod page;
mod page_table;
mod post_mortem_note;
mod recording_index;
mod recording_source;
mod server;
mod tile_query;
mod timeline_row;
mod timeline_tile;
mod watch_error;
mod watched_job;
mod watched_recording;
mod work_details;
mod worker_note;

pub use block_axis::AddressRange;
pub use block_map::MemoryHole;
pub use block_picture::{BlockPicture, BlockQuery, DrawnBlock};
pub use collective_totals::CollectiveTotals;
pub use device_facts::DeviceFacts;
pub use file_pattern::{FilePattern, recordings_in};
pub use finding_note::FindingNote;
pub use heap_change_note::HeapChangeNote;
pub use memory_series::{MemoryCurve, TagCurve};
pub use name_search::FoundName;
pub use name_table::{NameTotals, WorkPlace};
pub use post_mortem_note::PostMortemNote;
pub use recording_index::{FaultNote, RefusalNote, TakeoverNote};
pub use server::{ExpectedFile, WatchOptions, WatchServer};
pub use timeline_row::{RowKind, TimelineRow};
pub use timeline_tile::{
    MAX_TILE_WORKS, TILE_BUCKETS, TileContent, TileRequest, TileRow, TileSums, TileWorks, TimelineTile,
};
pub use watch_error::WatchError;
pub use watched_job::{JobRecording, JobState, LateCollective, RepeatCommandText, WatchedFiles, WatchedJob};
pub use watched_recording::{RecordingState, WatchedRecording};
pub use work_details::{GapDetails, WaitDetails, WorkDetails};
pub use worker_note::WorkerNote;
