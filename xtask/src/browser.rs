//! A browser for the tests of the page: named, fetched, or found on the system.
//!
//! The npm package `@sparticuz/chromium` holds a headless Chromium with its libraries and a font, for machines that have none, and runs
//! without a display. All a fresh machine needs is python3 with pip: it fetches the package from npm's registry over https, and a Python package
//! that unpacks it. The version and the digest are pinned. What is in place below target/ is never fetched again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Failure, Result};
use crate::process;

/// The variable that names the executable to the tests, and may name it to us.
const VARIABLE: &str = "KILN_CHROMIUM";
/// What messages call it.
const NAME: &str = "Chromium";

const VERSION: &str = "147.0.0";
const URL: &str = "https://registry.npmjs.org/@sparticuz/chromium/-/chromium-147.0.0.tgz";
const SHA256: &str = "18fe5404ce845594cd7d592fc07f37a19514079ba4d9c27192ad8b908743f16b";
const MEGABYTES: u32 = 68;
/// The Python package that unpacks Brotli.
const BROTLI: &str = "brotli==1.2.0";

/// Downloads the package, checks it, and unpacks it into a folder.
const UNPACK: &str = include_str!("browser/unpack.py");

/// What Chromium is called where it is installed.
const ON_SYSTEM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Where the browser is; none if it could not be had, and then why is said.
pub(crate) fn find_or_fetch(target: &Path) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(PathBuf::from(named));
    }
    let folder = target.join("browser");
    fetched(&folder).inspect_err(|failure| eprint!("{failure}")).ok().or_else(on_system).or_else(|| {
        eprintln!(
            "{NAME} is not available: install pip for python3, or a Chromium, or name one with {VARIABLE}"
        );
        None
    })
}

/// Tells a process where the browser is.
pub(crate) fn set_environment(browser: Option<&Path>, command: &mut Command) {
    if let Some(browser) = browser {
        command.env(VARIABLE, browser);
    }
}

/// The browser of the package, fetched if it is not in place.
fn fetched(folder: &Path) -> Result<PathBuf> {
    let home = folder.join(format!("chromium-{VERSION}"));
    let program = home.join("chromium");
    if program.is_file() {
        return Ok(program);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Failure::new("the packaged browser is for Linux on x86-64 only"));
    }
    let partial = folder.join(format!("partial-{}", std::process::id()));
    std::fs::create_dir_all(&partial).map_err(|error| Failure::file("create", &partial, &error))?;
    let done = fetch(&partial).and_then(|unpacked| match std::fs::rename(&unpacked, &home) {
        // Another process that was faster is as good.
        Err(error) if !program.is_file() => Err(Failure::file("move the browser to", &home, &error)),
        _ => Ok(program),
    });
    // Whether it worked or not, what is left here is of no use.
    let _ = std::fs::remove_dir_all(&partial);
    done
}

/// Downloads and unpacks; where it was unpacked to.
fn fetch(partial: &Path) -> Result<PathBuf> {
    eprintln!("fetching {NAME} ({URL}, {MEGABYTES} MB, once)");
    let (wheels, unpacked) = (partial.join("wheels"), partial.join("unpacked"));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest"]);
    pip.arg(&wheels).arg(BROTLI).stdout(std::io::stderr());
    process::succeed(&mut pip)?;
    let mut python = Command::new("python3");
    python.args(["-c", UNPACK]).arg(&wheels).arg(&unpacked).args([URL, SHA256]).stdout(Stdio::null());
    process::succeed(&mut python)?;
    Ok(unpacked)
}

fn on_system() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let places = ON_SYSTEM.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.into_iter().find(|place| place.is_file())
}
