//! What `kiln top` sees of this process: a small file in the user's runtime folder, written anew twice a second.
//!
//! Nothing is published unless it is asked for, by [`publish`] or by `KILN_TOP=1`: it takes a thread, and the names of program and tags
//! leave the process. The folder is the user's alone (mode 0700), and so is the file (0600), which has a limited size and is replaced as a
//! whole. It is removed when the last runtime ends. What a program that was killed left behind, `kiln top` removes.

mod entry;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use entry::Publication;
use kiln_probe::ProbeError;

/// The variable that asks for publishing: `1` or `on`; `0` or `off` asks for none.
pub const TOP_VARIABLE: &str = "KILN_TOP";

/// How often the file is written.
const EVERY: Duration = Duration::from_millis(500);

/// Whether a thread publishes.
static IS_PUBLISHED: AtomicBool = AtomicBool::new(false);
/// Whether it was said that nothing can be published.
static IS_TOLD: AtomicBool = AtomicBool::new(false);
/// Held while the file is written or removed.
static FILE: Mutex<()> = Mutex::new(());

/// Shows the runtimes of this process to `kiln top` of the same user, from here on. Once is enough.
///
/// ```no_run
/// kiln::telemetry::publish()?;
/// let gpu = kiln::DeviceRuntime::simulated(1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A folder that is not the user's alone, or cannot be written; no thread that can be started.
pub fn publish() -> io::Result<()> {
    if IS_PUBLISHED.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    let started = begin();
    if started.is_err() {
        IS_PUBLISHED.store(false, Ordering::SeqCst);
    }
    started
}

/// Where programs of this user publish: `kiln` in `XDG_RUNTIME_DIR`, or else `kiln-UID` in the temporary folder.
pub fn published_folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| Path::new(folder).is_absolute()) {
        Some(folder) => Path::new(&folder).join("kiln"),
        None => std::env::temp_dir().join(format!("kiln-{}", rustix::process::geteuid().as_raw())),
    }
}

/// Publishes if the environment asks for it. Where that fails, it is said on the standard error, once, and the program runs on.
///
/// # Errors
/// A value that is not understood.
pub(crate) fn publish_as_environment_says() -> Result<(), ProbeError> {
    let Some(value) = std::env::var_os(TOP_VARIABLE) else { return Ok(()) };
    let is_asked = match value.to_str() {
        Some("1" | "on") => true,
        Some("" | "0" | "off") => false,
        _ => {
            return Err(ProbeError::Environment {
                variable: TOP_VARIABLE,
                text: value.to_string_lossy().into_owned(),
                wanted: "1 or on to be seen by `kiln top`, 0 or off not to be",
            });
        }
    };
    if is_asked && let Err(error) = publish() {
        tracing::warn!(target: "kiln", %error, "`kiln top` does not see this program");
        // Who set the variable may have no log. Once is enough, also where there are several runtimes.
        if !IS_TOLD.swap(true, Ordering::Relaxed) {
            let _ =
                writeln!(io::stderr(), "kiln: {TOP_VARIABLE}: `kiln top` does not see this program: {error}");
        }
    }
    Ok(())
}

/// A runtime ended: the file goes with the last.
pub(crate) fn runtime_ended() {
    if IS_PUBLISHED.load(Ordering::Relaxed) && entry::is_empty() {
        let _file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = fs::remove_file(path(&published_folder()));
    }
}

fn begin() -> io::Result<()> {
    let folder = published_folder();
    own_folder(&folder)?;
    let mut publication = Publication::new();
    std::thread::Builder::new().name("kiln-published".to_owned()).spawn(move || {
        loop {
            // A disk that is full, or a folder that was removed, may be well again the next time.
            let _ = write(&folder, &mut publication);
            std::thread::sleep(EVERY);
        }
    })?;
    Ok(())
}

/// Makes the folder, or sees that it is the user's alone.
fn own_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let shown = folder.display();
            let what = format!(
                "{shown} cannot be made: {error}; have XDG_RUNTIME_DIR name a folder that is there, or unset it"
            );
            return Err(io::Error::new(error.kind(), what));
        }
        _ => {}
    }
    let known = fs::symlink_metadata(folder)?;
    let is_own =
        known.uid() == rustix::process::geteuid().as_raw() && known.permissions().mode() & 0o077 == 0;
    if known.is_dir() && is_own {
        return Ok(());
    }
    let what = format!(
        "{} is not a folder of this user alone; set its mode to 0700, or remove it",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// Replaces the file, or removes it where there is no runtime.
fn write(folder: &Path, publication: &mut Publication) -> io::Result<()> {
    let text = publication.text();
    let _file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = path(folder);
    // Looked at once more: the last runtime may have ended meanwhile, and removed the file.
    let Some(text) = text.filter(|_| !entry::is_empty()) else {
        let _ = fs::remove_file(path);
        return Ok(());
    };
    let fresh = folder.join(format!(".{}.new", std::process::id()));
    // A process that had the same number may have left one.
    let _ = fs::remove_file(&fresh);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes()).and_then(|()| fs::rename(&fresh, &path)).inspect_err(|_| {
        let _ = fs::remove_file(&fresh);
    })
}

fn path(folder: &Path) -> PathBuf {
    folder.join(format!("{}.json", std::process::id()))
}
