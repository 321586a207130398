//! What a program publishes.

use serde::{Deserialize, Serialize};

/// The format that is understood.
const FORMAT: u32 = 1;
const NO_ENTRY: &str = "it is not what a kiln program writes; remove it";

/// A program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Program {
    /// Its number.
    pub(super) process: u32,
    /// When it began, as the system counts it; 0 if that is not known.
    #[serde(skip_serializing)]
    pub(super) started: u64,
    /// Its name.
    pub(super) program: String,
    /// How it is run again; empty if it does not say.
    #[serde(default)]
    pub(super) command: String,
    /// What the command lacks to run it again, in words; empty if it lacks nothing.
    #[serde(default)]
    pub(super) command_lacks: String,
    /// When it was published, in milliseconds since 1970.
    pub(super) updated_ms: u64,
    /// Whether it has not published for a while.
    #[serde(skip_deserializing)]
    pub(super) is_silent: bool,
    /// Its runtimes.
    pub(super) runtimes: Vec<Runtime>,
}

/// A runtime of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Runtime {
    pub(super) kind: String,
    pub(super) ordinal: u32,
    pub(super) name: String,
    pub(super) uuid: String,
    pub(super) state: String,
    pub(super) faults: u64,
    pub(super) limit_bytes: u64,
    pub(super) live_bytes: u64,
    pub(super) peak_bytes: u64,
    pub(super) held_bytes: u64,
    pub(super) streams: u64,
    pub(super) submissions: u64,
    pub(super) submissions_per_second: f64,
    pub(super) tags: Vec<Tag>,
}

/// Memory under a tag.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tag {
    pub(super) tag: String,
    pub(super) bytes: u64,
}

impl Program {
    /// Reads the entry of a process.
    ///
    /// # Errors
    /// In words, why it is none.
    pub(super) fn read(text: &[u8], process: u32) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let version: Version = serde_json::from_slice(text).map_err(|_| NO_ENTRY.to_owned())?;
        if version.format != FORMAT {
            let found = version.format;
            return Err(format!(
                "it has version {found} of the format, and this kiln reads version {FORMAT}; use the kiln of that program"
            ));
        }
        let program: Self = serde_json::from_slice(text).map_err(|_| NO_ENTRY.to_owned())?;
        if program.process != process {
            return Err(format!("it says that it is of process {}", program.process));
        }
        Ok(program)
    }
}
