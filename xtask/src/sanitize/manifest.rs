//! The list of what was published with a toolchain, read.
//!
//! rustup keeps it beside the toolchain it installed (`lib/rustlib/multirust-channel-manifest.toml`), so it names exactly the archives that
//! belong to that compiler, with a digest for each. It is a machine's file of a fixed shape: sections, and one `key = value` to a line. Only
//! that shape is read; whatever else it may become is refused and not guessed at.

use crate::failure::{Failure, Result};

/// The shape that is understood.
const VERSION: &str = "2";
/// Where the archives lie below their server, and in which paths they are given.
const SERVER: &str = "https://static.rust-lang.org/";

/// An archive of one component.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Archive {
    /// Its path below the server, with the date it was published on.
    pub(super) path: String,
    /// What its contents must hash to, in lower case.
    pub(super) sha256: String,
}

impl Archive {
    /// Where it is fetched from; the server is that of rustup, if it was told another.
    pub(super) fn url(&self, server: Option<&str>) -> String {
        format!("{}/{}", server.unwrap_or(SERVER).trim_end_matches('/'), self.path)
    }
}

/// The archive of a package for a target; `*` is a package that is the same for all.
pub(super) fn archive(manifest: &str, package: &str, target: &str) -> Result<Archive> {
    let bad =
        |what: String| Failure::new(format!("the list of what was published with this toolchain {what}"));
    match value(manifest.lines(), "manifest-version") {
        Some(VERSION) => {}
        Some(other) => return Err(bad(format!("has version {other}, and {VERSION} is known here"))),
        None => return Err(bad("does not say its version; it is damaged".into())),
    }
    let date = value(manifest.lines(), "date").unwrap_or("an unknown date");
    let names = [format!("[pkg.{package}.target.{target}]"), format!("[pkg.{package}.target.\"{target}\"]")];
    let mut lines = manifest.lines();
    if !lines.any(|line| names.iter().any(|name| line.trim() == name)) {
        return Err(bad(format!("of {date} has no {package} for {target}; take a toolchain of another day")));
    }
    let section = || lines.clone().take_while(|line| !line.trim_start().starts_with('['));
    if value(section(), "available") != Some("true") {
        return Err(bad(format!(
            "of {date} says that {package} could not be built; take a toolchain of another day"
        )));
    }
    let path = value(section(), "xz_url").and_then(|url| url.strip_prefix(SERVER));
    let path = path.filter(|path| path.split('/').all(|step| !matches!(step, "" | "." | "..")));
    let hash = value(section(), "xz_hash")
        .filter(|hash| hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()));
    match (path, hash) {
        (Some(path), Some(hash)) => Ok(Archive { path: path.to_owned(), sha256: hash.to_ascii_lowercase() }),
        (None, _) => Err(bad(format!("names no archive below {SERVER} for {package}"))),
        (_, None) => Err(bad(format!("has no digest for {package}, and nothing is taken without one"))),
    }
}

/// What stands behind a key, up to the first section; without its quotes, of which there are two or none.
fn value<'a>(lines: impl Iterator<Item = &'a str>, key: &str) -> Option<&'a str> {
    let mut pairs =
        lines.take_while(|line| !line.trim_start().starts_with('[')).filter_map(|line| line.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim() == key)?;
    match value.trim().strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"'),
        None => Some(value.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "6adf46a133ea712139dbee295142dae13cd6bb7c2c5852f429b03069c9a8f919";

    const OTHER: &str = "0adf46a133ea712139dbee295142dae13cd6bb7c2c5852f429b03069c9a8f919";

    fn manifest() -> String {
        format!(
            "manifest-version = \"2\"\ndate = \"2026-05-20\"\n\n\
             [pkg.miri-preview]\nversion = \"0.1.0-nightly\"\n\n\
             [pkg.miri-preview.target.aarch64-apple-darwin]\navailable = false\n\n\
             [pkg.miri-preview.target.x86_64-unknown-linux-gnu]\navailable = true\n\
             url = \"https://static.rust-lang.org/other.tar.gz\"\nhash = \"{OTHER}\"\n\
             xz_url = \"https://static.rust-lang.org/dist/2026-05-20/miri-nightly-x86_64-unknown-linux-gnu.tar.xz\"\n\
             xz_hash = \"{HASH}\"\ncomponents = []\n\n\
             [pkg.rust-src.target.\"*\"]\navailable = true\n\
             xz_url = \"https://static.rust-lang.org/dist/2026-05-20/rust-src-nightly.tar.xz\"\n\
             xz_hash = \"{}\"\n",
            HASH.to_ascii_uppercase()
        )
    }

    fn refusal(manifest: &str, package: &str, target: &str) -> String {
        archive(manifest, package, target).unwrap_err().to_string()
    }

    #[test]
    fn the_archive_of_this_host_is_found_and_not_a_neighbour() {
        let miri = archive(&manifest(), "miri-preview", "x86_64-unknown-linux-gnu").unwrap();
        assert_eq!(miri.path, "dist/2026-05-20/miri-nightly-x86_64-unknown-linux-gnu.tar.xz");
        assert_eq!(miri.sha256, HASH);
        let source = archive(&manifest(), "rust-src", "*").unwrap();
        assert_eq!(source.url(None), "https://static.rust-lang.org/dist/2026-05-20/rust-src-nightly.tar.xz");
        assert_eq!(source.url(Some("http://here/")), "http://here/dist/2026-05-20/rust-src-nightly.tar.xz");
        assert_eq!(source.sha256, HASH, "digests compare in lower case");
    }

    #[test]
    fn what_is_not_there_is_said_with_the_date() {
        let text = refusal(&manifest(), "miri-preview", "riscv64gc-unknown-linux-gnu");
        assert!(
            text.contains("2026-05-20 has no miri-preview for riscv64gc") && text.contains("another day"),
            "{text}"
        );
        let text = refusal(&manifest(), "miri-preview", "aarch64-apple-darwin");
        assert!(text.contains("could not be built"), "{text}");
    }

    #[test]
    fn a_damaged_list_is_refused_and_never_guessed_at() {
        let host = "x86_64-unknown-linux-gnu";
        let with = |from: &str, to: &str| {
            let damaged = manifest().replace(from, to);
            assert_ne!(damaged, manifest(), "{from} is in it");
            refusal(&damaged, "miri-preview", host)
        };
        assert!(with("manifest-version = \"2\"", "").contains("damaged"));
        assert!(with("manifest-version = \"2\"", "manifest-version = \"3\"").contains("has version 3"));
        assert!(with(HASH, "6adf").contains("no digest"));
        assert!(with(HASH, &"g".repeat(64)).contains("no digest"));
        assert!(
            with(&format!("xz_hash = \"{HASH}\"\n"), "").contains("no digest"),
            "and not that of another section or format"
        );
        assert!(
            with("https://static.rust-lang.org/dist/2026-05-20/miri", "http://elsewhere/miri")
                .contains("no archive")
        );
        assert!(with("dist/2026-05-20/miri", "dist/../../miri").contains("no archive"));
        assert!(with("xz_url = ", "xz_uri = ").contains("no archive"));
        assert!(refusal("", "miri-preview", host).contains("damaged"));
        let whole = manifest();
        let start = whole.find("linux-gnu]").unwrap();
        for end in start..whole.find("components").unwrap() - 1 {
            assert!(archive(&whole[..end], "miri-preview", host).is_err(), "cut at {end}");
        }
    }
}
