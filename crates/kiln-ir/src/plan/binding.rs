//! Computes the number of elements of every buffer of a launch.

use super::error::PlanError;
use crate::declaration::{BufferId, Extent, Role};
use crate::program::Program;
use crate::scalar_type::Type;

/// One buffer of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Which buffer.
    pub id: BufferId,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The type of its elements.
    pub element: Type,
    /// How many it has.
    pub length: u64,
    /// Whether the caller gave memory for it. If not, the launch allocates zeroed memory.
    pub given: bool,
}

impl Binding {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.length * self.element.bytes()
    }

    /// Whether its content must be there before the launch: what the caller gave, or zeros.
    pub fn is_read(&self) -> bool {
        self.role.is_readable()
    }

    /// Whether its content may be different after the launch.
    pub fn is_written(&self) -> bool {
        self.role.is_writable()
    }
}

/// The buffers of a launch, each with its length.
///
/// A length follows from the memory that is given, from a fixed count, or from the buffer it is declared like. They
/// must agree.
///
/// ```
/// use kiln_ir::{BindingPlan, Program};
///
/// let program = Program::parse(
///     "kernel twice(in x: f32[], out y: f64[like x]) block(64) over(x) { y[global.x] = f64(x[global.x]) * 2.0; }",
/// )?;
/// let plan = BindingPlan::new(&program, &[("x", 40)])?;
/// assert_eq!((plan.bindings[1].length, plan.bindings[1].bytes()), (10, 80));
///
/// let error = BindingPlan::new(&program, &[("x", 40), ("y", 72)]).unwrap_err();
/// assert_eq!(error.to_string(), "kernel `twice`: `y` has 9 elements, but must have 10 (it is like `x`)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingPlan {
    /// In the order of the program.
    pub bindings: Vec<Binding>,
}

impl BindingPlan {
    /// Plans a launch for which the caller has memory of so many bytes, by name.
    ///
    /// # Errors
    /// A name that does not exist or comes twice, bytes that are no whole elements, a length that is wrong or unknown.
    pub fn new(program: &Program, given: &[(&str, u64)]) -> Result<Self, PlanError> {
        let kernel = || program.name.clone();
        let mut lengths: Vec<Option<u64>> = vec![None; program.buffers.len()];
        for (name, bytes) in given {
            let Some(id) = program.buffer_named(name) else {
                return Err(PlanError::Unknown {
                    kernel: kernel(),
                    what: "buffer",
                    name: (*name).to_owned(),
                });
            };
            let element = program.buffers[id.index()].element;
            if bytes % element.bytes() != 0 {
                let (buffer, bytes) = ((*name).to_owned(), *bytes);
                return Err(PlanError::Elements { kernel: kernel(), buffer, bytes, element });
            }
            if lengths[id.index()].replace(bytes / element.bytes()).is_some() {
                return Err(PlanError::Shape { kernel: kernel(), what: format!("`{name}` was given twice") });
            }
        }
        let bindings = (0..program.buffers.len()).map(|at| bind(program, at, &lengths));
        Ok(Self { bindings: bindings.collect::<Result<_, _>>()? })
    }

    /// The binding of a buffer.
    pub fn binding(&self, id: BufferId) -> Option<&Binding> {
        self.bindings.get(id.index())
    }
}

fn bind(program: &Program, at: usize, lengths: &[Option<u64>]) -> Result<Binding, PlanError> {
    let buffer = &program.buffers[at];
    let kernel = || program.name.clone();
    let missing = |at: usize| {
        let buffer = program.buffers[at].name.clone();
        PlanError::Missing { kernel: kernel(), buffer }
    };
    let (expected, why) = match buffer.extent {
        Extent::Dynamic => (lengths[at].ok_or_else(|| missing(at))?, String::new()),
        Extent::Static(count) => (count, "it is declared so".to_owned()),
        Extent::Like(other) => {
            let found = match program.buffers[other.index()].extent {
                Extent::Static(count) => Some(count),
                _ => lengths[other.index()],
            };
            let why = format!("it is like `{}`", program.buffers[other.index()].name);
            (found.ok_or_else(|| missing(other.index()))?, why)
        }
    };
    match lengths[at] {
        Some(found) if found != expected => {
            Err(PlanError::Length { kernel: kernel(), buffer: buffer.name.clone(), found, expected, why })
        }
        // What is read must come from somewhere; what is kept on the device may begin with zeros.
        None if matches!(buffer.role, Role::Input | Role::InOut) => Err(missing(at)),
        given => Ok(Binding {
            id: BufferId(at as u32),
            name: buffer.name.clone(),
            role: buffer.role,
            element: buffer.element,
            length: expected,
            given: given.is_some(),
        }),
    }
}
