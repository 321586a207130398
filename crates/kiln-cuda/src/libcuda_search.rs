//! Opens libcuda: which names are tried, and the error if none works.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::cuda_absence::{Attempt, DriverAbsence};
use crate::libraries::SearchEnvironment;

/// Names the driver library instead of the usual search; for unusual installations and for tests.
pub(crate) const OVERRIDE_VARIABLE: &str = "KILN_LIBCUDA";

/// What the loader is asked for, in order. The second name is there without the first only where a development
/// package is all there is; the third is where Windows' Linux keeps the driver, which not every distribution
/// has on its loader path.
const NAMES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"];

/// An opened library and the name it was opened by. It is never closed: once started it runs threads, and has handlers registered for the end
/// of the process.
pub(crate) struct Opened {
    pub(crate) library: ManuallyDrop<Library>,
    pub(crate) name: String,
    /// Whether the environment names it.
    is_named: bool,
}

impl Opened {
    /// The answer where it has no such entry point.
    pub(crate) fn incomplete(&self, symbol: &'static str) -> DriverAbsence {
        if self.is_named {
            return named(Path::new(&self.name), &format!("it has no `{symbol}`"));
        }
        DriverAbsence::Incomplete { library: self.name.clone(), symbol }
    }
}

/// The answer where the environment names what cannot be used.
fn named(path: &Path, why: &str) -> DriverAbsence {
    // The loader begins with the name itself.
    let name = path.to_string_lossy();
    let why = why.strip_prefix(&*name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(why);
    DriverAbsence::Named { variable: OVERRIDE_VARIABLE, path: path.to_owned(), why: why.to_owned() }
}

/// Opens libcuda, and starts nothing in it.
pub(crate) fn open(surroundings: &SearchEnvironment) -> Result<Opened, DriverAbsence> {
    if !cfg!(target_os = "linux") {
        return Err(DriverAbsence::UnsupportedPlatform { system: std::env::consts::OS });
    }
    if let Some(name) = surroundings.variable(OVERRIDE_VARIABLE) {
        let opened = load(name, true);
        return opened.map_err(|attempt| named(Path::new(name), &attempt.error));
    }
    let names: Vec<OsString> = NAMES.iter().map(OsString::from).collect();
    let mut tried = Vec::new();
    for name in &names {
        match load(name, false) {
            Ok(opened) => return Ok(opened),
            Err(attempt) => tried.push(attempt),
        }
    }
    Err(unusable(surroundings, &names, &tried).unwrap_or(DriverAbsence::NoDriver { tried }))
}

fn load(name: &OsStr, is_named: bool) -> Result<Opened, Attempt> {
    let text = name.to_string_lossy().into_owned();
    // The loader would wait for a pipe.
    if Path::new(name).metadata().is_ok_and(|known| !known.is_file() && !known.is_dir()) {
        return Err(Attempt { name: text, error: "it is no file".to_owned() });
    }
    // SAFETY: running the initialisers of libcuda is what the caller asked for; they have no precondition, and
    // its finalisers run at the end of the process only.
    match unsafe { Library::new(name) } {
        Ok(library) => Ok(Opened { library: ManuallyDrop::new(library), name: text, is_named }),
        Err(error) => Err(Attempt { name: text, error: loader_text(&error) }),
    }
}

/// What the system's loader said.
fn loader_text(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// A file that has the right name and was not accepted, which is another answer than that there is none.
fn unusable(
    surroundings: &SearchEnvironment,
    names: &[OsString],
    tried: &[Attempt],
) -> Option<DriverAbsence> {
    names.iter().zip(tried).find_map(|(name, attempt)| {
        let path = file_behind(surroundings, Path::new(name))?;
        Some(DriverAbsence::Unusable { path, why: attempt.error.clone() })
    })
}

fn file_behind(surroundings: &SearchEnvironment, name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    surroundings.loader_folders().into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}
