//! Laws about library operations as images.

use kiln_driver::{Command, DriverExt, Function, GraphNode, Image, Refusal};

use crate::expect::{equal, holds, inapplicable, refused};
use crate::fixture::{Rig, plain_launch};
use crate::kernels::Arguments;
use crate::law::{Law, LawVerdict, Stop};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "libraries.function",
        says: "a library image has one function, named as its operation, with eight bytes for each operand and the workspace last",
        run: function,
    },
    Law {
        name: "libraries.launch",
        says: "a library operation runs in the order of its stream",
        run: launch,
    },
    Law {
        name: "libraries.graph",
        says: "a library operation is a node of a graph, and its arguments can be changed there",
        run: graph,
    },
    Law {
        name: "libraries.info",
        says: "an operation that finds no result in its numbers says so in its info word, and the stream goes on",
        run: info,
    },
    Law {
        name: "libraries.convolution",
        says: "a convolution applies a filter to each position of an image, with zeros around it",
        run: convolution,
    },
    Law {
        name: "libraries.bad_text",
        says: "a text that is no operation is refused with what is wrong",
        run: bad_text,
    },
    Law {
        name: "libraries.bad_arguments",
        says: "arguments of another size are refused, and nothing is queued",
        run: bad_arguments,
    },
];

/// `y = alpha x + y` for eight numbers.
const AXPY: &str = "blas.axpy element=f32 n=8 x_step=1 y_step=1";
/// Parameters of the operation, without workspace.
const OPERANDS: usize = 3;

/// The Cholesky factor of four numbers.
const POTRF: &str = "solve.potrf element=f32 n=2 triangle=lower leading=2";

/// A filter of 2 x 2 on an image of 2 x 2, with zeros around it.
const CONVOLUTION: &str = "dnn.convolution pass=forward element=f32 layout=nchw batch=1 channels=1 image=2x2 filters=1 filter=2x2 padding=1x1 stride=1x1 \
    dilation=1x1 groups=1 math=ieee order=run_to_run workspace=33554432";

fn axpy(rig: &Rig<'_>) -> Result<Function, Stop> {
    loaded(rig, AXPY, "blas.axpy")
}

/// An operation, loaded; a law does not apply where its library cannot be used.
fn loaded(rig: &Rig<'_>, text: &str, name: &str) -> Result<Function, Stop> {
    match rig.load_image(&Image::Library(text)) {
        Ok(module) => Ok(rig.driver.function(module, name)?),
        Err(error) => match error.refusal() {
            Some(Refusal::Library { library, .. }) => inapplicable(format!("{library} is not here")),
            _ => Err(error.into()),
        },
    }
}

/// The arguments, with workspace where the function takes some.
fn arguments(rig: &Rig<'_>, axpy: &Function, x: u64, y: u64, alpha: f64) -> Result<Arguments, Stop> {
    let arguments = Arguments::new().u64(x).u64(y).u64(alpha.to_bits());
    Ok(match axpy.attributes.workspace_bytes {
        0 => arguments,
        bytes => arguments.address(rig.memory(bytes)?.address),
    })
}

fn numbers(values: [f32; 8]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn function(rig: &Rig<'_>) -> LawVerdict {
    let axpy = axpy(rig)?;
    let spans = axpy.attributes.parameters.clone().unwrap_or_default();
    let count = OPERANDS + usize::from(axpy.attributes.workspace_bytes > 0);
    equal("parameters", spans.len(), count)?;
    let places: Vec<(u32, u32)> = spans.iter().map(|span| (span.offset, span.bytes)).collect();
    let expected: Vec<(u32, u32)> = (0..count as u32).map(|at| (8 * at, 8)).collect();
    equal("their places", places, expected)?;
    let module = rig.load_image(&Image::Library(AXPY))?;
    let unknown = rig.driver.function(module, "axpy");
    refused("another name", unknown, |reason| matches!(reason, Refusal::NotFound { .. }))
}

fn launch(rig: &Rig<'_>) -> LawVerdict {
    let axpy = axpy(rig)?;
    let stream = rig.stream()?;
    let (x, y) = (rig.memory_with(&numbers([1.0; 8]))?, rig.memory_with(&numbers([10.0; 8]))?);
    for alpha in [2.0, -0.5] {
        let arguments = arguments(rig, &axpy, x.address.0, y.address.0, alpha)?;
        rig.launch(stream, axpy.id, 1, 1, &arguments)?;
    }
    rig.driver.synchronize(stream)?;
    equal("10 + 2 - 0.5", rig.get(y.id, 32)?, numbers([11.5; 8]))
}

fn graph(rig: &Rig<'_>) -> LawVerdict {
    let axpy = axpy(rig)?;
    let stream = rig.stream()?;
    let (x, y, z) = (
        rig.memory_with(&numbers([1.0; 8]))?,
        rig.memory_with(&numbers([0.0; 8]))?,
        rig.memory_with(&numbers([0.0; 8]))?,
    );
    let first = arguments(rig, &axpy, x.address.0, y.address.0, 1.0)?;
    let second = arguments(rig, &axpy, y.address.0, z.address.0, 2.0)?;
    let nodes = [
        GraphNode { command: Command::Launch(plain_launch(axpy.id, 1, 1, &first)), after: &[] },
        GraphNode { command: Command::Launch(plain_launch(axpy.id, 1, 1, &second)), after: &[0] },
    ];
    let graph = rig.graph(&nodes)?;
    for _ in 0..2 {
        rig.driver.submit(stream, &Command::Graph(graph))?;
    }
    rig.driver.synchronize(stream)?;
    equal("1 + 1", rig.get(y.id, 32)?, numbers([2.0; 8]))?;
    equal("2 and 4", rig.get(z.id, 32)?, numbers([6.0; 8]))?;
    let changed = arguments(rig, &axpy, x.address.0, y.address.0, -2.0)?;
    rig.driver.update_graph(graph, 0, &Command::Launch(plain_launch(axpy.id, 1, 1, &changed)))?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    equal("2 - 2", rig.get(y.id, 32)?, numbers([0.0; 8]))?;
    equal("6 + 0", rig.get(z.id, 32)?, numbers([6.0; 8]))
}

fn info(rig: &Rig<'_>) -> LawVerdict {
    let potrf = loaded(rig, POTRF, "solve.potrf")?;
    let stream = rig.stream()?;
    let four = |values: [f32; 4]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let workspace = match potrf.attributes.workspace_bytes {
        0 => None,
        bytes => Some(rig.memory(bytes)?.address),
    };
    let cases = [([1.0, 2.0, 2.0, 1.0], 2_i32), ([4.0, 2.0, 2.0, 5.0], 0), ([-1.0, 0.0, 0.0, 1.0], 1)];
    for (matrix, expected) in cases {
        let (a, word) = (rig.memory_with(&four(matrix))?, rig.memory_with(&[0xff; 4])?);
        let arguments = Arguments::new().address(a.address).address(word.address);
        let arguments = workspace.into_iter().fold(arguments, Arguments::address);
        rig.launch(stream, potrf.id, 1, 1, &arguments)?;
        rig.driver.synchronize(stream)?;
        equal(format!("the info word of {matrix:?}"), rig.get(word.id, 4)?, expected.to_le_bytes().to_vec())?;
        if expected == 0 {
            let found = rig.get(a.id, 16)?;
            equal("the factor's first column", &found[..8], &four([2.0, 1.0, 0.0, 0.0])[..8])?;
            equal("its last element", &found[12..], &2.0_f32.to_le_bytes()[..])?;
        }
    }
    Ok(())
}

fn convolution(rig: &Rig<'_>) -> LawVerdict {
    let convolution = loaded(rig, CONVOLUTION, "dnn.convolution")?;
    let stream = rig.stream()?;
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let (x, w) = (
        rig.memory_with(&bytes(&[1.0, 2.0, 3.0, 4.0]))?,
        rig.memory_with(&bytes(&[1.0, 10.0, 100.0, 1000.0]))?,
    );
    let y = rig.memory_with(&[0xff; 36])?;
    let arguments = Arguments::new().address(x.address).address(w.address).address(y.address);
    let arguments = match convolution.attributes.workspace_bytes {
        0 => arguments,
        bytes => arguments.address(rig.memory(bytes)?.address),
    };
    rig.launch(stream, convolution.id, 1, 1, &arguments)?;
    rig.driver.synchronize(stream)?;
    let expected = [1000.0, 2100.0, 200.0, 3010.0, 4321.0, 402.0, 30.0, 43.0, 4.0];
    equal("the nine positions", rig.get(y.id, 36)?, bytes(&expected))
}

fn bad_text(rig: &Rig<'_>) -> LawVerdict {
    for text in
        ["", "blas.axpi n=8", "blas.axpy element=f32 n=8", "blas.axpy element=f32 n=0 x_step=1 y_step=1"]
    {
        let loaded = rig.driver.load(&Image::Library(text));
        refused(
            format!("`{text}`"),
            loaded,
            |reason| matches!(reason, Refusal::Image { log, .. } if !log.trim().is_empty()),
        )?;
    }
    Ok(())
}

fn bad_arguments(rig: &Rig<'_>) -> LawVerdict {
    let axpy = axpy(rig)?;
    let stream = rig.stream()?;
    let y = rig.memory_with(&numbers([3.0; 8]))?;
    let short = Arguments::new().address(y.address);
    let submitted = rig.launch(stream, axpy.id, 1, 1, &short);
    holds(submitted.is_err(), "a refusal of eight bytes of arguments", "the launch was taken")?;
    rig.driver.synchronize(stream)?;
    equal("what was there", rig.get(y.id, 32)?, numbers([3.0; 8]))
}
