//! NVRTC, ptxas, the CUDA headers and cuRAND for the tests: found, or fetched as Python packages.
//!
//! The tests compile CUDA C on machines that have no GPU and no toolkit. NVIDIA publishes the parts as Python
//! packages that need neither, so all a fresh machine needs is pip. The versions are pinned ([`parts`]). Order of
//! search: the variables `KILN_NVRTC`, `KILN_PTXAS`, `KILN_CUDA_INCLUDE` and `KILN_CURAND`; a whole toolkit on the system
//! ([`system`]); the packages ([`fetch`]); at last an NVRTC alone on the system. They come from one place
//! unless a variable says otherwise, because a ptxas refuses PTX that is newer than itself.

mod fetch;
mod parts;
mod system;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::failure::{Failure, Result};
use crate::workspace::Workspace;
use parts::{PARTS, Part};

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Leaves a toolkit on the system alone and takes the pinned packages
    #[arg(long)]
    pinned: bool,
}

/// Where to look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// On the system first, then among the packages.
    Everywhere,
    /// Among the packages only.
    Packages,
}

/// Where each part is, in the order of [`PARTS`]; `None` is a part that could not be had.
pub(crate) struct Toolkit {
    places: [Option<PathBuf>; PARTS.len()],
}

impl Toolkit {
    /// Looks for the parts and fetches what is not there. A part that cannot be had is no failure yet: what is
    /// missing is said, and the tests that need it skip.
    pub(crate) fn find_or_fetch(target: &Path, search: Search) -> Result<Self> {
        let named = PARTS.each_ref().map(|part| std::env::var_os(part.variable).map(PathBuf::from));
        for (part, place) in PARTS.iter().zip(&named) {
            check_named(part, place.as_deref())?;
        }
        if named.iter().all(Option::is_some) {
            return Ok(Self { places: named });
        }
        let look_around = search == Search::Everywhere;
        let mut places = match system::toolkit_root().filter(|_| look_around) {
            Some(root) => PARTS.each_ref().map(|part| part.in_toolkit(&root)),
            None => fetch::all(&target.join("nvrtc")),
        };
        for (place, named) in places.iter_mut().zip(named) {
            *place = named.or(place.take());
        }
        if let ([nvrtc @ None, ..], true) = (&mut places, look_around) {
            *nvrtc = system::nvrtc_alone();
        }
        Ok(Self { places })
    }

    /// Tells a process where the parts are.
    pub(crate) fn set_environment(&self, command: &mut Command) {
        for (variable, value) in self.variables() {
            command.env(variable, value);
        }
    }

    /// The folder of the CUDA headers.
    pub(crate) fn headers(&self) -> Result<PathBuf> {
        let place = PARTS.iter().zip(&self.places).find(|(part, _)| part.variable == "KILN_CUDA_INCLUDE");
        place
            .and_then(|(_, place)| place.clone())
            .ok_or_else(|| Failure::new("the CUDA headers could not be had"))
    }

    /// The parts that could not be had.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        PARTS
            .iter()
            .zip(&self.places)
            .filter(|(_, place)| place.is_none())
            .map(|(part, _)| part.name)
            .collect()
    }

    /// The environment that leads to the parts. NVRTC opens a second library by its bare name, which is why its
    /// directory goes to the loader's path.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables: Vec<_> = PARTS
            .iter()
            .zip(&self.places)
            .filter_map(|(part, place)| Some((part.variable, place.as_ref()?.display().to_string())))
            .collect();
        if let [Some(nvrtc), ..] = &self.places {
            let directory = if nvrtc.is_dir() { Some(nvrtc.as_path()) } else { nvrtc.parent() };
            let before = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
            let first = directory.map(|directory| directory.display().to_string()).unwrap_or_default();
            let path = if before.is_empty() { first } else { format!("{first}:{before}") };
            variables.push(("LD_LIBRARY_PATH", path));
        }
        variables
    }
}

/// Prints the environment for a shell.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let search = if arguments.pinned { Search::Packages } else { Search::Everywhere };
    let toolkit = Toolkit::find_or_fetch(&workspace.target, search)?;
    for (variable, value) in toolkit.variables() {
        println!("export {variable}='{}'", value.replace('\'', r"'\''"));
    }
    match &toolkit.missing()[..] {
        [] => Ok(()),
        missing => Err(Failure::new(format!("not found: {}; {}", missing.join(", "), parts::ADVICE))),
    }
}

/// A variable that leads nowhere is a mistake to point out, not a reason to search on.
fn check_named(part: &Part, place: Option<&Path>) -> Result {
    match place {
        Some(place) if !place.exists() => Err(Failure::new(format!(
            "{} names {}, which does not exist; correct it, or unset it to let xtask look for {}",
            part.variable,
            place.display(),
            part.name
        ))),
        _ => Ok(()),
    }
}
