//! A library that was found is loaded, and asked for its version: names may say less than all of it, or nothing.

use std::mem::ManuallyDrop;

use super::found_library::{FoundLibrary, LibraryOrigin, MissingLibrary, SearchedPlace};
use super::version::LibraryVersion;
use crate::dynamic_library::{self, Library, RTLD_LOCAL, RTLD_NOW};

impl FoundLibrary {
    /// Loads the library, and returns it with the version that it tells, if it tells one. Its initialisers run in this process, which keeps it until it ends. Neither
    /// a driver nor a device is needed.
    ///
    /// # Errors
    /// It does not load, with what the loader says; it is older than kiln can use; it lacks an entry point that each version of it has.
    pub fn load(&self) -> Result<Self, MissingLibrary> {
        let (library, asked) = self.open()?;
        if let Some(symbol) = self.kind.first_symbol() {
            // SAFETY: the address is looked up and nothing is called.
            let there = unsafe { library.get::<unsafe extern "C" fn()>(symbol) };
            there
                .map_err(|_| self.unloadable(format!("has no `{symbol}`, which every {} has", self.kind)))?;
        }
        Ok(Self { version: most_detailed(asked, self.version), ..self.clone() })
    }

    /// The library, and the version that it tells. It is never unloaded.
    ///
    /// # Errors
    /// It does not load, or is older than kiln can use.
    pub(crate) fn open(&self) -> Result<(ManuallyDrop<Library>, Option<LibraryVersion>), MissingLibrary> {
        // SAFETY: running the initialisers of the library is what the caller asked for. It is never unloaded.
        let library = unsafe { dynamic_library::open(&self.path, RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| {
            self.unloadable(format!("cannot be loaded: {}", dynamic_library::reason(&error)))
        })?;
        let library = ManuallyDrop::new(library);
        let version = self.kind.loaded_version(&self.path);
        match version.and_then(|version| self.kind.too_old(version)) {
            Some(why) => {
                let place = SearchedPlace { is_too_old: true, ..SearchedPlace::other(&self.path, why) };
                Err(self.unusable(place))
            }
            None => Ok((library, version)),
        }
    }

    fn unloadable(&self, why: String) -> MissingLibrary {
        self.unusable(SearchedPlace { is_unloadable: true, ..SearchedPlace::other(&self.path, why) })
    }

    fn unusable(&self, place: SearchedPlace) -> MissingLibrary {
        let variable = (self.origin == LibraryOrigin::Configured).then(|| self.kind.variable());
        MissingLibrary { kind: self.kind, tried: vec![place], variable }
    }
}

/// What a library tells of its version, or what names tell if they say the same and more.
fn most_detailed(asked: Option<LibraryVersion>, named: Option<LibraryVersion>) -> Option<LibraryVersion> {
    match (asked, named) {
        (Some(asked), Some(named))
            if asked.patch.is_none() && (asked.major, asked.minor) == (named.major, named.minor) =>
        {
            Some(named)
        }
        (asked, named) => asked.or(named),
    }
}
