//! Finds the folder of the disk cache.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where compiled code is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum CachePlace {
    /// `$XDG_CACHE_HOME/kiln`, or `~/.cache/kiln`; nowhere if neither is known.
    #[default]
    User,
    /// In this folder.
    At(PathBuf),
    /// Nowhere: everything is compiled anew in each process.
    Off,
}

/// What the place depends on besides the configuration.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// `XDG_CACHE_HOME`.
    pub xdg_cache_home: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        Self { xdg_cache_home: std::env::var_os("XDG_CACHE_HOME"), home: std::env::var_os("HOME") }
    }
}

impl CachePlace {
    /// The folder, if there is one.
    pub fn folder(&self, around: &Surroundings) -> Option<PathBuf> {
        match self {
            Self::At(folder) => Some(folder.clone()),
            Self::Off => None,
            Self::User => {
                // A relative path is to be ignored, says the convention.
                let absolute = |text: &OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
                let base = around.xdg_cache_home.as_ref().and_then(absolute);
                let home = || around.home.as_ref().and_then(absolute).map(|home| home.join(".cache"));
                Some(base.or_else(home)?.join("kiln"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_configuration_wins_and_a_relative_one_outside_of_it_is_ignored() {
        let around = |xdg: Option<&str>, home: Option<&str>| Surroundings {
            xdg_cache_home: xdg.map(OsString::from),
            home: home.map(OsString::from),
        };
        let folder = |place: &CachePlace, around: &Surroundings| {
            place.folder(around).map(|path| path.display().to_string())
        };
        let both = around(Some("/x"), Some("/h"));
        assert_eq!(folder(&CachePlace::User, &both).as_deref(), Some("/x/kiln"));
        assert_eq!(
            folder(&CachePlace::User, &around(Some("x"), Some("/h"))).as_deref(),
            Some("/h/.cache/kiln")
        );
        assert_eq!(folder(&CachePlace::User, &around(None, None)), None);
        assert_eq!(folder(&CachePlace::At("/own".into()), &both).as_deref(), Some("/own"));
        assert_eq!(folder(&CachePlace::Off, &both), None);
    }
}
