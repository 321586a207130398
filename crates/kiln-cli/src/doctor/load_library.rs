//! `kiln load-library`: loads a library, and on a GPU an operation of it, and prints what it found out. `kiln doctor` starts it for each library; it is no command
//! for users.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use kiln::libraries::{FoundLibrary, Library, LibraryOrigin, LibraryVersion};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::library_cost::{Sample, sample_operation};
use crate::exit_code::Exit;
use crate::failure::Failure;

/// The name of the command.
pub(super) const NAME: &str = "load-library";

/// The flag that names the CUDA device of the first operation.
pub(super) const DEVICE: &str = "--device";

/// The words of `kiln load-library`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The CUDA device that an operation is loaded on.
    #[arg(long)]
    device: Option<u32>,
    /// The library, such as `cuBLAS`.
    library: String,
    /// Its file.
    path: PathBuf,
    /// The version that names tell.
    version: Option<String>,
}

/// What was found out.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Loaded {
    /// The version, in its parts.
    version: Option<(u32, Option<u32>, Option<u32>)>,
    /// Why the library cannot be used, if it cannot.
    pub(super) why: Option<String>,
    pub(super) is_too_old: bool,
}

impl Loaded {
    /// The answer in what a process printed.
    pub(super) fn find(printed: &[u8]) -> Option<Self> {
        answer_in(printed)
    }

    pub(super) fn version(&self) -> Option<LibraryVersion> {
        self.version.map(|(major, minor, patch)| LibraryVersion { major, minor, patch })
    }

    fn of(found: &FoundLibrary) -> Self {
        match found.load() {
            Ok(loaded) => {
                let parts = |LibraryVersion { major, minor, patch }| (major, minor, patch);
                Self { version: loaded.version.map(parts), ..Self::default() }
            }
            Err(missing) => {
                let place = missing.unusable();
                let why = place.map_or_else(|| missing.to_string(), |place| place.why.clone());
                Self {
                    why: Some(why),
                    is_too_old: place.is_some_and(|place| place.is_too_old),
                    version: None,
                }
            }
        }
    }
}

/// An answer in what a process printed: its last line that is one.
pub(super) fn answer_in<T: DeserializeOwned>(printed: &[u8]) -> Option<T> {
    printed.rsplit(|byte| *byte == b'\n').find_map(|line| serde_json::from_slice(line).ok())
}

/// Prints an answer on a separate line, whatever the library printed. A reader that is gone needs none.
fn print(answer: &impl Serialize) {
    let answer = serde_json::to_string(answer).unwrap_or_default();
    let mut output = std::io::stdout();
    let _ = writeln!(output, "\n{answer}").and_then(|()| output.flush());
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let known = Library::ALL.into_iter().find(|library| library.name() == arguments.library);
    let kind = known.ok_or_else(|| Failure::usage(format!("`{}` is no library", arguments.library)))?;
    // It ends with the command that started it, and leaves no file when it crashes. Without either it does the same.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let version = arguments.version.as_deref().and_then(version_of);
    let path = arguments.path.clone();
    let start = Instant::now();
    let loaded = Loaded::of(&FoundLibrary { kind, path, version, origin: LibraryOrigin::System });
    let load_time = start.elapsed();
    print(&loaded);
    if let (None, Some(device), Some(operation)) = (&loaded.why, arguments.device, sample_operation(kind)) {
        print(&Sample::on_device(device, operation, load_time));
    }
    Ok(Exit::Done)
}

fn version_of(text: &str) -> Option<LibraryVersion> {
    let mut parts = text.split('.').map_while(|part| part.parse().ok());
    Some(LibraryVersion { major: parts.next()?, minor: parts.next(), patch: parts.next() })
}

#[cfg(test)]
mod tests {
    use super::{Loaded, version_of};

    #[test]
    fn the_answer_is_found_behind_what_a_library_printed() {
        let printed = b"{}\nhello\xff{\n{\"version\":[12,4,null],\"why\":null,\"is_too_old\":false}\nbye";
        let version = Loaded::find(printed).unwrap().version().unwrap();
        assert_eq!(Some(version), version_of("12.4"));
        assert!(Loaded::find(b"hello").is_none() && Loaded::find(b"").is_none());
    }
}
