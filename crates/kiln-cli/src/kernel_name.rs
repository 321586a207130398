//! Names of kernels: as PTX has them, and as their authors wrote them.
//!
//! C++ compilers mangle names: `saxpy(float, float*)` is `_Z5saxpyfPf` in PTX. A kernel may be named in either way, with its parameters
//! or without, as long as it is clear which one is meant. Otherwise the error has the names to choose from.

use std::path::{Path, PathBuf};

use crate::demangled_name::{function_name, readable, signature};
use crate::failure::Failure;
use crate::template_kernel::TemplateKernel;

/// The most names an error lists.
const MAX_LISTED: usize = 12;
/// The most names an error suggests for one that is misspelt.
const MAX_SUGGESTED: usize = 3;

/// The kernels of a file.
pub(crate) struct KernelNames {
    path: PathBuf,
    /// As in PTX.
    names: Vec<String>,
    templates: Vec<TemplateKernel>,
}

impl KernelNames {
    /// The kernels of a file: their names in PTX, and the templates that have no code yet.
    pub(crate) fn new(path: &Path, names: Vec<String>, templates: Vec<TemplateKernel>) -> Self {
        Self { path: path.to_owned(), names, templates }
    }

    /// The name in PTX of the kernel that is meant: of the only one, if none is named.
    pub(crate) fn choose(&self, wanted: Option<&str>) -> Result<String, Failure> {
        match (wanted, &self.names[..]) {
            (Some(wanted), _) => self.find(wanted),
            (None, [only]) => Ok(only.clone()),
            (None, []) => Err(self.empty()),
            (None, several) => {
                let message = format!("{} has {} kernels", self.path.display(), several.len());
                Err(Failure::usage(message).next(format!("choose one with --kernel NAME: {}", self.listed())))
            }
        }
    }

    /// The name in PTX of a kernel that is named in PTX or in C++.
    fn find(&self, wanted: &str) -> Result<String, Failure> {
        let spelt = spelling(wanted);
        let ways: [fn(&str) -> Option<String>; 4] = [
            |name| Some(name.to_owned()),
            signature,
            function_name,
            |name| Some(bare(&function_name(name)?).to_owned()),
        ];
        for way in ways {
            let is_meant = |name: &&String| way(name).is_some_and(|known| spelling(&known) == spelt);
            let meant: Vec<&String> = self.names.iter().filter(is_meant).collect();
            match &meant[..] {
                [] => {}
                [only] => return Ok((*only).clone()),
                several => {
                    let names: Vec<String> =
                        several.iter().map(|name| quoted(&readable_signature(name))).collect();
                    let message = format!("`{wanted}` may mean several kernels");
                    return Err(
                        Failure::refused(message).next(format!("write --kernel {}", names.join(" or ")))
                    );
                }
            }
        }
        Err(self.missing(wanted))
    }

    fn missing(&self, wanted: &str) -> Failure {
        if let Some(template) = self.templates.iter().find(|template| template.name == wanted) {
            let message = format!("`{wanted}` is a template and needs its arguments: {template}");
            return Failure::refused(message).next(format!("write --kernel {}", quoted(&template.example())));
        }
        if self.names.is_empty() && self.templates.is_empty() {
            return self.empty();
        }
        let message = format!("there is no kernel `{wanted}` in {}", self.path.display());
        let near = self.nearest(wanted);
        Failure::refused(message).next(match near.is_empty() {
            true => format!("it has {}", self.listed()),
            false => format!("did you mean {}?", near.join(" or ")),
        })
    }

    fn empty(&self) -> Failure {
        let message = format!("{} has no kernels", self.path.display());
        match self.templates.first() {
            None => Failure::refused(message)
                .next("kernels are `__global__` functions in CUDA C and `.entry` in PTX"),
            Some(template) => Failure::refused(format!("{message} but templates: {template}"))
                .next(format!("choose arguments, such as --kernel {}", quoted(&template.example()))),
        }
    }

    /// Names that are written almost like this one, the nearest first.
    fn nearest(&self, wanted: &str) -> Vec<String> {
        let names = self.names.iter().map(|name| (readable(name), name.clone()));
        let templates = self.templates.iter().map(|template| (template.example(), template.name.clone()));
        let limit = (wanted.chars().count() / 3).max(2);
        let mut ranked: Vec<(usize, String)> = names
            .chain(templates)
            .filter_map(|(shown, name)| {
                let edits =
                    [bare(&shown), &shown, &name].map(|other| strsim::damerau_levenshtein(wanted, other));
                edits.into_iter().min().filter(|edits| *edits <= limit).map(|edits| (edits, quoted(&shown)))
            })
            .collect();
        ranked.sort();
        ranked.dedup_by(|one, other| one.1 == other.1);
        ranked.into_iter().take(MAX_SUGGESTED).map(|(_, name)| name).collect()
    }

    /// All names, as they can be given.
    fn listed(&self) -> String {
        let templates = self.templates.iter().map(|template| quoted(&template.example()));
        let mut names: Vec<String> =
            self.names.iter().map(|name| quoted(&readable(name))).chain(templates).collect();
        let more = names.len().saturating_sub(MAX_LISTED);
        names.truncate(MAX_LISTED);
        let more =
            if more > 0 { format!(" and {more} more (`kiln inspect` lists them)") } else { String::new() };
        format!("{}{more}", names.join(", "))
    }
}

fn readable_signature(name: &str) -> String {
    signature(name).unwrap_or_else(|| name.to_owned())
}

/// A name without template arguments.
fn bare(name: &str) -> &str {
    name.split_once('<').map_or(name, |(bare, _)| bare)
}

/// A name without the blanks that C++ allows, so that `fill< float >` is `fill<float>`.
fn spelling(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '$' | '.');
    if name.chars().all(plain) && !name.contains('$') { name.to_owned() } else { format!("'{name}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> KernelNames {
        KernelNames::new(Path::new("k.ptx"), list.iter().map(|name| (*name).to_owned()).collect(), Vec::new())
    }

    #[test]
    fn a_kernel_is_found_by_every_name_it_has() {
        let names = names(&["_Z5scaleIfEvPT_", "_Z5scaleIdEvPT_", "_Z4samePi", "_Z4samePf", "plain"]);
        let find = |wanted: &str| names.choose(Some(wanted));
        assert_eq!(find("plain").unwrap(), "plain");
        assert_eq!(find("_Z4samePf").unwrap(), "_Z4samePf");
        assert_eq!(find("scale< float >").unwrap(), "_Z5scaleIfEvPT_");
        assert_eq!(find("same(int *)").unwrap(), "_Z4samePi");
        let several = find("same").unwrap_err().to_string();
        assert!(several.contains("'same(int*)' or 'same(float*)'"), "{several}");
        assert!(find("scale").unwrap_err().to_string().contains("'scale<float>(float*)'"));
    }

    #[test]
    fn the_only_kernel_needs_no_name() {
        assert_eq!(names(&["_Z4samePi"]).choose(None).unwrap(), "_Z4samePi");
        let several = names(&["first", "_Z5scaleIfEvPT_"]).choose(None).unwrap_err();
        assert_eq!(
            several.to_string(),
            "k.ptx has 2 kernels; choose one with --kernel NAME: first, 'scale<float>'"
        );
        assert!(names(&[]).choose(None).unwrap_err().to_string().contains("no kernels"));
        let many: Vec<String> = (0..100).map(|at| format!("k{at}")).collect();
        let many = names(&many.iter().map(String::as_str).collect::<Vec<_>>()).choose(None).unwrap_err();
        assert!(many.to_string().contains("and 88 more"), "{many}");
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        let names = names(&["saxpy", "_Z7reversePKfPfj", "_Z5scaleIfEvPT_"]);
        let told = |wanted: &str| names.choose(Some(wanted)).unwrap_err().to_string();
        assert!(told("saxpi").ends_with("did you mean saxpy?"), "{}", told("saxpi"));
        assert!(told("reserve").ends_with("did you mean reverse?"), "{}", told("reserve"));
        assert!(told("scael").ends_with("did you mean 'scale<float>'?"), "{}", told("scael"));
        assert!(told("matmul").ends_with("it has saxpy, reverse, 'scale<float>'"), "{}", told("matmul"));
    }
}
