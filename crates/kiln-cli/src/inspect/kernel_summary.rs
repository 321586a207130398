//! What is known of a file with kernels, as data.

use std::sync::Arc;

use kiln_ptx::exec::ExecProgram;
use kiln_ptx::{EntryFacts, Feature, PtxModule, PtxParameter, PtxParameterKind};
use serde::Serialize;

use crate::demangled_name::{function_name, parameter_types, with_readable_names};
use crate::template_kernel::TemplateKernel;

/// A file.
#[derive(Serialize)]
pub(crate) struct Sheet {
    pub(super) file: String,
    pub(super) ptx_version: String,
    pub(super) target: String,
    pub(super) entries: Vec<EntrySheet>,
    /// Kernels of CUDA C that have no code until arguments are chosen.
    pub(super) templates: Vec<TemplateSheet>,
}

/// A template of a kernel.
#[derive(Serialize)]
pub(super) struct TemplateSheet {
    pub(super) name: String,
    /// A way to name it to `--kernel`.
    pub(super) example: String,
}

/// A kernel.
#[derive(Serialize)]
pub(super) struct EntrySheet {
    pub(super) name: String,
    /// The C++ function that the name is mangled from.
    pub(super) function: Option<String>,
    pub(super) parameters: Vec<ParameterSheet>,
    pub(super) parameter_bytes: u64,
    pub(super) shared: SharedSheet,
    pub(super) barriers: Vec<u32>,
    /// Why no device runs the kernel: what `ptxas` refuses in its code.
    pub(super) refused: Option<String>,
    pub(super) max_threads_per_block: Option<u64>,
    pub(super) required_block: Option<[u32; 3]>,
    pub(super) needs: Vec<String>,
    /// Why some accesses are unknown.
    pub(super) doubts: Vec<DoubtSheet>,
    pub(super) unsupported: Vec<UnsupportedSheet>,
}

/// A parameter.
#[derive(Serialize)]
pub(super) struct ParameterSheet {
    pub(super) index: usize,
    /// As in PTX.
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// Its type in C++, where the name of the kernel tells it.
    pub(super) cpp_type: Option<String>,
    /// Its type in PTX.
    #[serde(rename = "type")]
    pub(super) ty: String,
    pub(super) bytes: u64,
    pub(super) offset: u64,
    pub(super) alignment: u32,
    /// What the kernel does with the memory behind it, for a pointer.
    pub(super) access: Option<&'static str>,
    /// The types of the elements that are accessed there, for a pointer; none if unknown.
    pub(super) elements: Option<Vec<&'static str>>,
    /// The pointers inside of a structure.
    pub(super) pointers: Vec<FieldSheet>,
}

/// A pointer inside of a structure.
#[derive(Serialize)]
pub(super) struct FieldSheet {
    pub(super) offset: u32,
    pub(super) access: &'static str,
}

/// Shared memory.
#[derive(Serialize)]
pub(super) struct SharedSheet {
    pub(super) static_bytes: u64,
    pub(super) dynamic: bool,
}

/// An instruction that the analysis cannot follow.
#[derive(Serialize)]
pub(super) struct DoubtSheet {
    pub(super) function: String,
    pub(super) ptx_line: u32,
    pub(super) reason: &'static str,
}

/// An instruction the simulated device does not run.
#[derive(Serialize)]
pub(super) struct UnsupportedSheet {
    pub(super) instruction: String,
    pub(super) family: Option<String>,
    pub(super) function: String,
    pub(super) ptx_line: u32,
    pub(super) source: Option<String>,
}

impl Sheet {
    /// All kernels of a module, or `only` one of them.
    pub(super) fn of(
        file: &str,
        module: Arc<PtxModule>,
        only: Option<&str>,
        templates: &[TemplateKernel],
    ) -> Self {
        let program = ExecProgram::new(module.clone());
        let facts = |name: &str| module.facts(module.find_function(name)?);
        let wanted = module.entries().filter(|entry| only.is_none_or(|only| &*entry.name == only));
        let entries = wanted.filter_map(|entry| Some(EntrySheet::of(&facts(&entry.name)?, &program)));
        let templates = templates.iter().filter(|_| only.is_none());
        let version = module.version;
        Self {
            file: file.to_owned(),
            ptx_version: format!("{}.{}", version.major, version.minor),
            target: module.target.architecture.to_string(),
            entries: entries.collect(),
            templates: templates
                .map(|template| TemplateSheet { name: template.to_string(), example: template.example() })
                .collect(),
        }
    }
}

impl EntrySheet {
    fn of(facts: &EntryFacts, program: &ExecProgram) -> Self {
        let types = parameter_types(&facts.name);
        let types = types.iter().filter(|_| types.len() == facts.signature.parameters.len());
        let types = types.map(Some).chain(std::iter::repeat(None));
        let parameters = facts.signature.parameters.iter().zip(types).enumerate();
        let refused = program.entry(&facts.name).and_then(|entry| entry.check_code().err());
        let refused = refused.map(|why| {
            let (why, kernel) = (why.to_string(), format!("kernel {}: ", facts.name));
            with_readable_names(why.strip_prefix(&kernel).unwrap_or(&why))
        });
        let block = if refused.is_some() { 0 } else { facts.barriers.block };
        Self {
            name: facts.name.to_string(),
            function: function_name(&facts.name),
            parameters: parameters
                .map(|(index, (parameter, ty))| ParameterSheet::of(index, parameter, ty))
                .collect(),
            parameter_bytes: facts.signature.size_bytes,
            shared: SharedSheet {
                static_bytes: facts.shared.static_bytes,
                dynamic: facts.shared.is_dynamic(),
            },
            refused,
            barriers: (0..u16::BITS).filter(|bit| block >> bit & 1 == 1).collect(),
            max_threads_per_block: facts.bounds.max_threads_per_block(),
            required_block: facts.bounds.required_threads,
            needs: facts.requirements.features.iter().map(|(feature, _)| word(*feature)).collect(),
            doubts: facts
                .doubts
                .iter()
                .map(|doubt| DoubtSheet {
                    function: doubt.function.to_string(),
                    ptx_line: doubt.position.line,
                    reason: doubt.reason,
                })
                .collect(),
            unsupported: unsupported(facts, program),
        }
    }
}

/// The instructions that the simulated device does not run, with their family where they have one.
fn unsupported(facts: &EntryFacts, program: &ExecProgram) -> Vec<UnsupportedSheet> {
    let Some(entry) = program.entry(&facts.name) else { return Vec::new() };
    let found = entry.unsupported().into_iter().map(|found| {
        let site = found.site;
        let family = facts.unsupported.iter().find(|known| known.position.line == site.ptx_line);
        UnsupportedSheet {
            instruction: site.instruction,
            family: family.map(|known| known.family.to_string()),
            function: site.function,
            ptx_line: site.ptx_line,
            source: site.source.map(|(file, line)| format!("{file}:{line}")),
        }
    });
    found.collect()
}

impl ParameterSheet {
    fn of(index: usize, parameter: &PtxParameter, cpp_type: Option<&String>) -> Self {
        let (kind, access) = match parameter.kind {
            PtxParameterKind::Pointer => {
                ("pointer", parameter.pointers.first().map(|field| field.effect.access().word()))
            }
            PtxParameterKind::Value => ("value", None),
            PtxParameterKind::Word => ("value or pointer", None),
            PtxParameterKind::Bytes => ("structure", None),
        };
        let pointers = match parameter.kind {
            PtxParameterKind::Bytes => &parameter.pointers[..],
            _ => &[],
        };
        Self {
            index,
            name: parameter.name.to_string(),
            kind,
            cpp_type: cpp_type.cloned(),
            ty: parameter.ty.keyword().to_owned(),
            bytes: parameter.size_bytes,
            offset: parameter.offset,
            alignment: parameter.align_bytes,
            access,
            elements: parameter
                .pointers
                .first()
                .filter(|_| access.is_some())
                .and_then(|field| field.elements.map(|types| types.iter().map(|ty| ty.keyword()).collect())),
            pointers: pointers
                .iter()
                .map(|field| FieldSheet { offset: field.offset, access: field.effect.access().word() })
                .collect(),
        }
    }
}

fn word(feature: Feature) -> String {
    match feature {
        Feature::Family(family) => format!("{family} instructions"),
        Feature::CooperativeLaunch => "a cooperative launch".into(),
        Feature::ClusterLaunch => "clusters".into(),
        Feature::Printf => "printf".into(),
        Feature::Assert => "assert".into(),
        Feature::Heap => "the device heap".into(),
        Feature::ExternalCall => "functions from outside of the module".into(),
        Feature::IndirectCall => "calls through pointers".into(),
    }
}
