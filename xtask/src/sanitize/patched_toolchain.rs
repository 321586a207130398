//! A copy of the toolchain below target/ to which missing components are added.
//!
//! The toolchain of rustup is left as it is. Its files are linked into a directory of our own, the archives of what is missing are unpacked
//! beside them, and a compiler that is started there takes that directory for its home. The archives are those that were published with
//! exactly this compiler: the list beside it names them, and what does not hash to the digest in the list is not unpacked.
//!
//! An archive that lies in place already is not fetched, so a machine without a network can be given it by hand. The directory is put
//! together under another name and moved to its place when it is whole.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::manifest::{self, Archive};
use super::toolchain::{Component, Toolchain};
use crate::failure::{Failure, Result};
use crate::process;

/// Where rustup keeps the list of what was published, below a toolchain.
const MANIFEST: &str = "lib/rustlib/multirust-channel-manifest.toml";
/// What a compiler needs of its directory; the rest is documentation.
const NEEDED: [&str; 2] = ["bin", "lib"];

/// The toolchain itself if it has the components, else one below a directory that has them.
pub(super) fn complete(
    toolchain: Toolchain,
    components: &[Component],
    directory: &Path,
) -> Result<Toolchain> {
    let missing: Vec<_> =
        components.iter().copied().filter(|component| !component.is_in(&toolchain.sysroot)).collect();
    if missing.is_empty() {
        return Ok(toolchain);
    }
    let home = directory.join(place(&toolchain.version, &missing));
    if !home.is_dir() {
        let archives = fetch_all(&toolchain, &missing, &directory.join("archives"))?;
        let partial = directory.join(format!("partial-{}", std::process::id()));
        let done =
            assemble(&toolchain.sysroot, &archives, &partial).and_then(|()| put_in_place(&partial, &home));
        // After a failure, and where another process was faster, what is left is of no use.
        let _ = std::fs::remove_dir_all(&partial);
        done?;
    }
    match missing.iter().find(|component| !component.is_in(&home)) {
        Some(component) => Err(Failure::new(format!(
            "{} has no {} though it was unpacked there; remove the directory to have it made again",
            home.display(),
            component.name()
        ))),
        None => Ok(Toolchain { sysroot: home, is_ours: false, ..toolchain }),
    }
}

/// The name of the directory: which compiler, and what was added.
fn place(version: &str, missing: &[Component]) -> String {
    let mut name = version.replace(['(', ')'], "").replace([' ', '/'], "-");
    missing.iter().for_each(|component| name.extend(["+", component.name()]));
    name
}

fn fetch_all(toolchain: &Toolchain, missing: &[Component], directory: &Path) -> Result<Vec<PathBuf>> {
    let list = toolchain.sysroot.join(MANIFEST);
    let text = std::fs::read_to_string(&list).map_err(|error| {
        let names: Vec<_> = missing.iter().map(|component| component.name()).collect();
        Failure::new(format!(
            "the toolchain {} lacks {}, and what belongs to it cannot be told: {}: {error}; take a toolchain of rustup",
            toolchain.version,
            names.join(" and "),
            list.display()
        ))
    })?;
    let fetched = missing.iter().map(|component| {
        let archive = manifest::archive(&text, component.package(), component.target(&toolchain.host))?;
        fetch(&archive, *component, directory)
    });
    fetched.collect()
}

/// The archive in its place, checked.
fn fetch(archive: &Archive, component: Component, directory: &Path) -> Result<PathBuf> {
    let file = directory.join(&archive.path);
    if !file.is_file() {
        let parent = file.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent).map_err(|error| Failure::file("create", parent, &error))?;
        download(archive, component, &file)?;
    }
    let mut hash = Command::new("sha256sum");
    let printed = process::output(hash.arg(&file))?;
    check_digest(&printed, archive).inspect_err(|_| {
        // So that the next run does not find it in place.
        let _ = std::fs::remove_file(&file);
    })?;
    Ok(file)
}

fn download(archive: &Archive, component: Component, file: &Path) -> Result {
    let server = std::env::var("RUSTUP_DIST_SERVER").ok();
    let url = archive.url(server.as_deref());
    let partial = file.with_extension(format!("partial-{}", std::process::id()));
    eprintln!("fetching {} ({url}, once)", component.name());
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--connect-timeout", "20", "--output"]);
    let done = process::succeed(curl.arg(&partial).arg(&url)).and_then(|()| put_in_place(&partial, file));
    done.map_err(|failure| {
        let _ = std::fs::remove_file(&partial);
        let name = component.name();
        Failure::new(format!(
            "{}\nthe toolchain lacks {name}, and it could not be fetched; put {url} at {} and run this again, \
             or run `rustup component add {name}` for the toolchain where there is a network",
            failure.to_string().trim_start_matches("error: ").trim_end(),
            file.display()
        ))
    })
}

/// Compares what `sha256sum` printed with what an archive must hash to.
fn check_digest(printed: &str, archive: &Archive) -> Result {
    // A name with odd characters in it makes the line begin with a backslash.
    let digest = printed.split_whitespace().next().unwrap_or_default().trim_start_matches('\\');
    if digest == archive.sha256 {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} hashes to {digest}, and the list of what was published says {}; it was thrown away, run this again to fetch it anew",
        archive.path, archive.sha256
    )))
}

/// Unpacks the archives and links every file of the toolchain that is not among them.
fn assemble(sysroot: &Path, archives: &[PathBuf], into: &Path) -> Result {
    std::fs::create_dir_all(into).map_err(|error| Failure::file("create", into, &error))?;
    for archive in archives {
        // The name of the archive, the name of the component, and then what belongs into the toolchain.
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(archive).arg("-C").arg(into).arg("--strip-components=2");
        process::succeed(&mut tar)?;
    }
    NEEDED.iter().try_for_each(|name| link_all(&sysroot.join(name), &into.join(name)))
}

/// Links a directory file by file; what is there already stays.
fn link_all(from: &Path, to: &Path) -> Result {
    std::fs::create_dir_all(to).map_err(|error| Failure::file("create", to, &error))?;
    let entries = from.read_dir().map_err(|error| Failure::file("read", from, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Failure::file("read", from, &error))?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            link_all(&path, &place)?;
        } else if let Err(error) = std::fs::hard_link(&path, &place)
            && error.kind() != ErrorKind::AlreadyExists
        {
            // On another file system, or owned by another user.
            std::fs::copy(&path, &place).map_err(|error| Failure::file("copy", &path, &error))?;
        }
    }
    Ok(())
}

/// Moves something to its place; another process that was faster is as good.
fn put_in_place(partial: &Path, home: &Path) -> Result {
    match std::fs::rename(partial, home) {
        Err(error) if !home.exists() => Err(Failure::file("move what was fetched to", home, &error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the five bytes `hello`.
    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("kiln-xtask-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn write(file: &Path, text: &str) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn toolchain(sysroot: PathBuf) -> Toolchain {
        Toolchain {
            sysroot,
            host: "h".into(),
            version: "1.97.0-nightly (e50aa6fba 2026-05-19)".into(),
            is_ours: true,
        }
    }

    #[test]
    fn an_archive_in_place_is_taken_by_its_digest_alone() {
        let directory = scratch("digest");
        let archive = |sha256: &str| Archive { path: "dist/day/a.tar.gz".into(), sha256: sha256.into() };
        let file = directory.join("dist/day/a.tar.gz");
        write(&file, "hello");
        assert_eq!(fetch(&archive(HELLO), Component::Miri, &directory).unwrap(), file);
        let text = fetch(&archive(&"0".repeat(64)), Component::Miri, &directory).unwrap_err().to_string();
        assert!(
            text.contains(HELLO) && text.contains("dist/day/a.tar.gz") && text.contains("again"),
            "{text}"
        );
        assert!(!file.exists(), "what is not what it should be is not found again");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn nothing_printed_is_no_digest() {
        let archive = Archive { path: "a".into(), sha256: HELLO.into() };
        assert!(check_digest("", &archive).is_err());
        assert!(check_digest(&format!("{}  a\n", &HELLO[..63]), &archive).is_err());
        assert!(check_digest(&format!("\\{HELLO}  a\\nb\n"), &archive).is_ok());
    }

    #[test]
    fn a_toolchain_that_has_all_is_left_alone_and_one_without_a_list_is_refused() {
        let directory = scratch("list");
        let bare = toolchain(directory.join("bare"));
        let text = complete(bare, &[Component::Miri, Component::Source], &directory).unwrap_err().to_string();
        assert!(text.contains("lacks miri and rust-src") && text.contains("1.97.0-nightly"), "{text}");
        let whole = toolchain(directory.join("whole"));
        write(&whole.sysroot.join("lib/rustlib/src/rust/library/std/Cargo.toml"), "");
        let same = complete(whole.clone(), &[Component::Source], &directory).unwrap();
        assert_eq!((same.sysroot, same.is_ours), (whole.sysroot, true));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_is_missing_is_put_beside_the_toolchain_and_not_into_it() {
        let directory = scratch("overlay");
        let (sysroot, stock) = (directory.join("toolchain"), directory.join("stock"));
        write(&sysroot.join("bin/rustc"), "the compiler");
        write(&sysroot.join("share/doc/large.html"), "documentation");
        write(&directory.join("packed/rust-src-nightly/install.sh"), "not for us");
        let source = "rust-src-nightly/rust-src/lib/rustlib/src/rust/library/std/Cargo.toml";
        write(&directory.join("packed").join(source), "the source");
        let file = stock.join("archives/dist/day/rust-src.tar.xz");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-cJf").arg(&file).arg("-C").arg(directory.join("packed")).arg("rust-src-nightly");
        process::succeed(&mut tar).unwrap();
        let digest = process::output(Command::new("sha256sum").arg(&file)).unwrap();
        let list = format!(
            "manifest-version = \"2\"\ndate = \"day\"\n[pkg.rust-src.target.\"*\"]\navailable = true\n\
             xz_url = \"https://static.rust-lang.org/dist/day/rust-src.tar.xz\"\nxz_hash = \"{}\"\n",
            digest.split_whitespace().next().unwrap()
        );
        write(&sysroot.join(MANIFEST), &list);

        let made = complete(toolchain(sysroot.clone()), &[Component::Source], &stock).unwrap();
        assert_eq!(made.sysroot, stock.join("1.97.0-nightly-e50aa6fba-2026-05-19+rust-src"));
        assert!(!made.is_ours && Component::Source.is_in(&made.sysroot));
        assert_eq!(std::fs::read_to_string(made.sysroot.join("bin/rustc")).unwrap(), "the compiler");
        assert!(!made.sysroot.join("share").exists() && !made.sysroot.join("install.sh").exists());
        assert!(!Component::Source.is_in(&sysroot), "the toolchain of rustup is as it was");

        // Once it is in place, neither list nor archive is asked for.
        std::fs::remove_file(&file).unwrap();
        std::fs::remove_file(sysroot.join(MANIFEST)).unwrap();
        assert!(complete(toolchain(sysroot), &[Component::Source], &stock).is_ok());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
