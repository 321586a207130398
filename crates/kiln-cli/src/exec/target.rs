//! Which devices the program gets: simulated ones, or GPUs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use kiln::libraries;
use kiln::probe::{Availability, Policy, prober};

use super::shim_library;
use crate::failure::Failure;

/// The devices that a user asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Target {
    /// The simulated device.
    Sim,
    /// The GPUs of this machine.
    Cuda,
}

impl Target {
    /// Looks whether the devices are there, and says what the library needs to find them, as variables of the program.
    pub(super) fn variables(self, isolates: bool) -> Result<Vec<(&'static str, OsString)>, Failure> {
        let mut variables = Vec::new();
        if self == Self::Cuda {
            variables.push(("KILN_EXEC_TARGET", OsString::from("cuda")));
            // The program's loader finds the library of kiln under the name of the driver's, so the driver's is named by its file.
            variables.push(("KILN_LIBCUDA", driver_file()?.into_os_string()));
        }
        if isolates {
            let command = std::env::current_exe().and_then(|path| path.canonicalize());
            let command =
                command.map_err(|error| Failure::fault(format!("the file of this command: {error}")))?;
            variables.push(("KILN_EXEC_WORKER", command.into_os_string()));
        }
        Ok(variables)
    }

    /// Whether the program gets a libnvidia-ml of kiln; GPUs have the driver's.
    pub(super) fn has_management(self) -> bool {
        self == Self::Sim
    }
}

/// The file of the driver's library, which has a device.
fn driver_file() -> Result<PathBuf, Failure> {
    if let Availability::Absent(absence) = prober().availability_under(Policy::Required)? {
        return Err(kiln::Error::from(absence).into());
    }
    let driver = libraries::driver().map_err(kiln::Error::from)?;
    let named = PathBuf::from(&driver.name);
    let file = driver.path.unwrap_or(named).canonicalize();
    let file = file.map_err(|error| {
        Failure::fault(format!("the file of the driver's library {} is not known: {error}", driver.name))
            .next("name it with KILN_LIBCUDA")
    })?;
    if is_ours(&file) {
        let message = format!("{} is the library of kiln and not that of the driver", file.display());
        return Err(Failure::usage(message).next(
            "start `kiln exec --device cuda` outside of `kiln exec`, or name the driver's library with KILN_LIBCUDA",
        ));
    }
    Ok(file)
}

fn is_ours(file: &Path) -> bool {
    shim_library::has_mark(file).unwrap_or(false)
}
