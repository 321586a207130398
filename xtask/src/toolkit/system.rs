//! A CUDA toolkit that is already on the machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::parts::PARTS;

/// Where a toolkit is by custom.
const USUAL_ROOT: &str = "/usr/local/cuda";

/// The first place that has all the parts.
pub(crate) fn toolkit_root() -> Option<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    named.chain([PathBuf::from(USUAL_ROOT)]).find(|root| is_whole(root))
}

/// An NVRTC the system's loader knows, though the rest of a toolkit is not there.
pub(crate) fn nvrtc_alone() -> Option<PathBuf> {
    let output =
        Command::new("ldconfig").arg("-p").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    nvrtc_in_listing(&String::from_utf8_lossy(&output.stdout))
}

fn is_whole(root: &Path) -> bool {
    PARTS.iter().all(|part| part.in_toolkit(root).is_some())
}

/// The path behind `libnvrtc.so...` in what `ldconfig -p` prints.
fn nvrtc_in_listing(listing: &str) -> Option<PathBuf> {
    let line = listing.lines().find(|line| line.trim_start().starts_with("libnvrtc.so"))?;
    line.split_once("=> ").map(|(_, path)| PathBuf::from(path.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_listing_is_read() {
        let listing = "2 libs found in cache\n\
            \tlibnvrtc-builtins.so.13.0 (libc6,x86-64) => /lib/a/libnvrtc-builtins.so.13.0\n\
            \tlibnvrtc.so.13 (libc6,x86-64) => /lib/a/libnvrtc.so.13\n";
        assert_eq!(nvrtc_in_listing(listing), Some(PathBuf::from("/lib/a/libnvrtc.so.13")));
        assert_eq!(nvrtc_in_listing("0 libs found in cache"), None);
    }
}
