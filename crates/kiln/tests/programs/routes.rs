//! Every route gives the same bytes for the same program, and those are what the interpreter gives.

use kiln::program::{Bindings, Pipeline, ProgramError};
use kiln::{GpuRef, Result, buffer::Element};

use crate::case::{self, Case, Data, Meaning};
use crate::rig::{Rig, refusal};

/// How data gets to a program and back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    /// From slices; results are returned.
    Host,
    /// From slices and vectors; results go to the caller's vectors.
    Into,
    /// All on the device.
    Resident,
    /// Every other one on the device.
    Mixed,
    /// Up, step and back as one submission.
    Sequence,
    /// Recorded and replayed.
    Graph,
}

const ROUTES: [Route; 6] =
    [Route::Host, Route::Into, Route::Resident, Route::Mixed, Route::Sequence, Route::Graph];

/// A buffer of some type on the device.
enum Resident {
    F32(GpuRef<f32>),
    U32(GpuRef<u32>),
    F64(GpuRef<f64>),
}

macro_rules! each {
    ($enum:ident, $value:expr, |$data:ident| $body:expr) => {
        match $value {
            $enum::F32($data) => $body,
            $enum::U32($data) => $body,
            $enum::F64($data) => $body,
        }
    };
}

impl Resident {
    fn upload(rig: &Rig, data: &Data) -> Self {
        match data {
            Data::F32(data) => Self::F32(rig.gpu().upload(data).unwrap()),
            Data::U32(data) => Self::U32(rig.gpu().upload(data).unwrap()),
            Data::F64(data) => Self::F64(rig.gpu().upload(data).unwrap()),
        }
    }

    fn bind<'a>(&self, name: &str, to: Bindings<'a>) -> Bindings<'a> {
        each!(Self, self, |buffer| to.resident(name, buffer))
    }

    fn bytes(&self) -> Vec<u8> {
        fn download<T: Element>(buffer: &GpuRef<T>) -> Vec<u8> {
            bytemuck::cast_slice(&buffer.download().unwrap()).to_vec()
        }
        each!(Self, self, |buffer| download(buffer))
    }

    fn is_trusted(&self) -> bool {
        each!(Self, self, |buffer| buffer.is_trusted())
    }
}

/// Whether the program only writes a buffer.
fn is_output(case: &Case, name: &str) -> bool {
    let buffer = case.program.buffers.iter().find(|buffer| buffer.name == name).unwrap();
    buffer.role.is_writable() && !buffer.role.is_readable()
}

/// Whether it only reads it.
fn is_input(case: &Case, name: &str) -> bool {
    let buffer = case.program.buffers.iter().find(|buffer| buffer.name == name).unwrap();
    !buffer.role.is_writable()
}

/// Binds host data: to be read, to be read and written, or to be written.
fn bind_host<'a>(case: &Case, name: &str, data: &'a mut Data, to: Bindings<'a>) -> Bindings<'a> {
    if is_input(case, name) {
        each!(Data, data, |data| to.input(name, data))
    } else if is_output(case, name) {
        each!(Data, data, |data| to.output(name, data))
    } else {
        each!(Data, data, |data| to.in_out(name, data))
    }
}

/// The scalars of a case.
fn scalars<'a>(case: &Case) -> Bindings<'a> {
    case.scalars.iter().fold(Bindings::new(), |given, (name, value)| given.scalar(name, *value))
}

/// The bytes of every buffer afterwards.
fn run(rig: &Rig, pipeline: &Pipeline, case: &Case, route: Route) -> Result<Vec<Vec<u8>>> {
    match route {
        Route::Host => from_slices(pipeline, case),
        Route::Into => into_vectors(rig, pipeline, case, |_| false),
        Route::Mixed => into_vectors(rig, pipeline, case, |at| at % 2 == 0),
        Route::Resident => into_vectors(rig, pipeline, case, |_| true),
        Route::Sequence => in_sequence(rig, pipeline, case),
        Route::Graph => as_graph(rig, pipeline, case),
    }
}

fn from_slices(pipeline: &Pipeline, case: &Case) -> Result<Vec<Vec<u8>>> {
    let data = case.buffers.clone();
    let mut given = scalars(case);
    for (name, data) in data.iter().filter(|(name, _)| !is_output(case, name)) {
        given = each!(Data, data, |data| given.input(name, data));
    }
    let mut done = pipeline.dispatch_with(given, &case.config)?;
    let mut taken = |name: &str, data: &Data| -> Result<Vec<u8>> {
        match data {
            _ if is_input(case, name) => Ok(data.bytes()),
            Data::F32(_) => Ok(Data::F32(done.outputs.take(name)?).bytes()),
            Data::U32(_) => Ok(Data::U32(done.outputs.take(name)?).bytes()),
            Data::F64(_) => Ok(Data::F64(done.outputs.take(name)?).bytes()),
        }
    };
    let bytes = data.iter().map(|(name, data)| taken(name, data)).collect::<Result<_>>()?;
    assert_eq!(done.outputs.names().count(), 0, "nothing else comes back");
    Ok(bytes)
}

fn into_vectors(
    rig: &Rig,
    pipeline: &Pipeline,
    case: &Case,
    on_device: impl Fn(usize) -> bool,
) -> Result<Vec<Vec<u8>>> {
    let mut data = case.buffers.clone();
    let mut residents = Vec::new();
    for (at, (_, data)) in data.iter().enumerate() {
        residents.push(on_device(at).then(|| Resident::upload(rig, data)));
    }
    let mut given = scalars(case);
    for ((name, data), resident) in data.iter_mut().zip(&residents) {
        given = match resident {
            Some(resident) => resident.bind(name, given),
            None => bind_host(case, name, data, given),
        };
    }
    let done = pipeline.dispatch_with(given, &case.config);
    if done.is_err() {
        assert_eq!(data, case.buffers, "vectors of the host are as they were");
        for ((name, _), resident) in case.buffers.iter().zip(&residents) {
            let trusted = resident.as_ref().is_none_or(Resident::is_trusted);
            assert_eq!(trusted, resident.is_none() || is_input(case, name), "{name}");
        }
    }
    done?;
    let bytes = |(at, resident): (usize, &Option<Resident>)| match resident {
        Some(resident) => resident.bytes(),
        None => data[at].1.bytes(),
    };
    Ok(residents.iter().enumerate().map(bytes).collect())
}

fn in_sequence(rig: &Rig, pipeline: &Pipeline, case: &Case) -> Result<Vec<Vec<u8>>> {
    let mut results: Vec<Vec<u8>> = vec![Vec::new(); case.buffers.len()];
    let (mut given, mut buffers) = (scalars(case), Vec::new());
    for (name, data) in &case.buffers {
        let buffer = rig.gpu().allocate::<u32>(data.bytes().len() / 4)?;
        given = match data {
            Data::F32(_) => given.resident(name, &buffer.cast::<f32>()?),
            Data::U32(_) => given.resident(name, &buffer),
            Data::F64(_) => given.resident(name, &buffer.cast::<f64>()?),
        };
        buffers.push(buffer.cast::<u8>()?);
    }
    let mut sequence = rig.backend.sequence();
    for (buffer, (_, data)) in buffers.iter().zip(&case.buffers) {
        sequence.upload(buffer, &data.bytes())?;
    }
    sequence.step_with(pipeline, given, &case.config)?;
    for (buffer, result) in buffers.iter().zip(&mut results) {
        sequence.read(buffer, result)?;
    }
    sequence.run()?;
    Ok(results)
}

fn as_graph(rig: &Rig, pipeline: &Pipeline, case: &Case) -> Result<Vec<Vec<u8>>> {
    let (mut given, mut residents) = (scalars(case), Vec::new());
    for (name, data) in &case.buffers {
        let resident = Resident::upload(rig, data);
        given = resident.bind(name, given);
        residents.push(resident);
    }
    let mut sequence = rig.backend.sequence();
    sequence.step_with(pipeline, given, &case.config)?;
    sequence.build()?.replay()?;
    Ok(residents.iter().map(Resident::bytes).collect())
}

fn judge(rig: &Rig) {
    for case in [case::blend(), case::does_not_trap(), case::traps(), case::meets()] {
        let pipeline = rig.backend.compile(&case.program).unwrap();
        let name = &case.program.name;
        for route in ROUTES {
            let result = run(rig, &pipeline, &case, route);
            match case.meaning() {
                _ if route == Route::Graph && case.can_trap => {
                    assert!(matches!(refusal(result), ProgramError::Unsupported { .. }), "{name}");
                }
                Meaning::Buffers(expected) => {
                    assert!(result.unwrap() == expected, "{name} by the route {route:?}");
                }
                Meaning::Trap(code, block, thread) => {
                    let trap = ProgramError::Trap { program: name.clone(), code, thread, block };
                    assert_eq!(refusal(result), trap, "{name} by the route {route:?}");
                }
            }
        }
    }
}

#[test]
fn every_route_gives_what_the_interpreter_gives_on_the_simulated_device() {
    let rig = Rig::simulated();
    judge(&rig);
    rig.finish();
}

#[test]
fn every_route_gives_what_the_interpreter_gives_on_a_gpu() {
    if let Some(rig) = Rig::cuda("every_route_gives_what_the_interpreter_gives_on_a_gpu") {
        judge(&rig);
        rig.finish();
    }
}
