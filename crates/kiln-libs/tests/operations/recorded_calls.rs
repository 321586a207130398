//! Library calls in recordings: they are told apart from the kernels of the program, by their names.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use kiln::DeviceRuntime;
use kiln::telemetry::Count;
use kiln::trace::{RecordingReader, SubmissionKind, TraceEvent, export_perfetto};
use kiln_libs::blas::{Blas, Matrix};
use kiln_libs::dnn::Dnn;
use kiln_libs::elementwise::Elementwise;
use kiln_libs::fft::{Fft, Scale};
use kiln_libs::prims::Primitives;
use kiln_libs::rand::{Sampler, Uniform};
use kiln_libs::solve::{Solve, Triangle};
use kiln_libs::sparse::{CsrMatrix, Diagonal, Sparse};

/// A file that goes away with the test.
struct Recorded(PathBuf);

impl Recorded {
    fn new(label: &str) -> Self {
        Self(std::env::temp_dir().join(format!("kiln-libs-{label}-{}.kiln", std::process::id())))
    }

    fn reader(&self) -> RecordingReader<BufReader<File>> {
        RecordingReader::new(BufReader::new(File::open(&self.0).unwrap())).unwrap()
    }

    /// Submissions with their kinds, names, whether they have the shape of a launch, and lines.
    fn submissions(&self) -> Vec<Submitted> {
        let (mut reader, mut found) = (self.reader(), Vec::new());
        while let Some(event) = reader.next_event().unwrap() {
            let line = match &event {
                TraceEvent::Submission(work) => work.line,
                // A runtime that ends waits by itself.
                TraceEvent::HostWait(wait) if wait.line.is_some() => wait.line,
                _ => continue,
            };
            let line = line.unwrap();
            assert!(line.file.ends_with("recorded_calls.rs"), "{event:?}");
            if let TraceEvent::Submission(work) = event {
                found.push((work.kind, work.name.to_owned(), work.size.is_some(), line.line));
            }
        }
        found
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A kernel of the program.
const NOTHING: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
";

/// A submission of a recording: what it is, its name, whether it has a shape, and its line.
type Submitted = (SubmissionKind, String, bool, u32);

/// The submissions of a piece of work, and its launches and those of them that are a library's, as they are counted.
fn recorded(label: &str, work: impl FnOnce(&DeviceRuntime)) -> (Recorded, Vec<Submitted>, [u64; 2]) {
    let file = Recorded::new(label);
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file.0).unwrap();
    work(&gpu);
    gpu.synchronize().unwrap();
    let seen = gpu.telemetry().snapshot();
    let counts = [Count::Launches, Count::LibraryLaunches].map(|count| seen.count(count));
    drop(gpu);
    let submissions = file.submissions();
    (file, submissions, counts)
}

/// The launches among submissions.
fn launches(submissions: &[Submitted]) -> Vec<(SubmissionKind, &str, bool)> {
    let is_launch = |kind| matches!(kind, SubmissionKind::Kernel | SubmissionKind::Library);
    let all = submissions.iter().filter(|(kind, ..)| is_launch(*kind));
    all.map(|(kind, name, has_shape, _)| (*kind, name.as_str(), *has_shape)).collect()
}

#[test]
fn operations_of_a_library_are_recorded_under_their_names() {
    let (file, submissions, counts) = recorded("operations", |gpu| {
        let (blas, fft, solve) = (Blas::new(gpu), Fft::new(gpu), Solve::new(gpu));
        let [a, b, c] = [1.0_f32, 2.0, 0.0].map(|value| gpu.upload(&[value; 4]).unwrap());
        let square = |buffer| Matrix::new(buffer, 2, 2);
        blas.matmul(square(&a), square(&b), square(&c)).submit().unwrap();
        let prepared = blas.matmul(square(&a), square(&b), square(&c)).prepare().unwrap();
        prepared.submit(&a, &b, &c).unwrap();
        blas.axpy(1.0, &a, &b).submit().unwrap();
        let nothing = gpu.kernel(NOTHING, "nothing").unwrap();
        // SAFETY: it touches nothing.
        unsafe { gpu.launch(&nothing).grid(2).block(32).submit() }.unwrap();
        let spectrum = gpu.upload(&[[1.0_f32, 0.0]; 8]).unwrap();
        fft.transform(&[8]).forward_in_place(&spectrum).submit().unwrap();
        let matrix = gpu.upload(&[4.0_f64, 0.0, 0.0, 9.0]).unwrap();
        solve.cholesky(Matrix::new(&matrix, 2, 2), Triangle::Lower).submit().unwrap().wait().unwrap();
    });
    let library = |name| (SubmissionKind::Library, name, false);
    let expected = [
        library("blas.matmul"),
        library("blas.matmul"),
        library("blas.axpy"),
        (SubmissionKind::Kernel, "nothing", true),
        library("fft"),
        library("solve.potrf"),
    ];
    assert_eq!(launches(&submissions), expected, "{submissions:?}");
    assert_eq!(counts, [6, 5]);
    // The trace for Perfetto has the names, and says of five slices what they are.
    let mut trace = Vec::new();
    export_perfetto(&mut file.reader(), &mut trace).unwrap();
    let has = |words: &str| trace.windows(words.len()).any(|bytes| bytes == words.as_bytes());
    assert!(has("blas.axpy") && has("solve.potrf") && has("library call"));
}

#[test]
fn kernels_of_a_call_are_recorded_under_the_call() {
    let (_file, submissions, counts) = recorded("kernels", |gpu| {
        let (prims, elements, dnn) = (Primitives::new(gpu), Elementwise::new(gpu), Dnn::new(gpu));
        let keys = gpu.upload(&(0..9000).rev().collect::<Vec<u32>>()).unwrap();
        prims.sort(&keys, &keys).submit().unwrap();
        let [x, y] = [1.0_f32, 0.0].map(|value| gpu.upload(&[value; 64]).unwrap());
        Sampler::new(gpu).draw(1).fill(&x, Uniform).unwrap();
        dnn.softmax(&x, 8, &y).submit().unwrap();
        elements.affine(2.0, &x, 0.0, &y).submit().unwrap();
        // The result of the library, and a kernel that multiplies it.
        let spectrum = gpu.upload(&[[1.0_f32, 0.0]; 8]).unwrap();
        Fft::new(gpu).transform(&[8]).scale(Scale::Factor(0.5)).forward_in_place(&spectrum).submit().unwrap();
    });
    let launched = launches(&submissions);
    assert!(launched.iter().all(|(kind, ..)| *kind == SubmissionKind::Library), "{submissions:?}");
    assert_eq!(counts, [launched.len() as u64; 2]);
    let calls: Vec<&str> = launched.iter().map(|(_, name, _)| name.split(": ").next().unwrap()).collect();
    let mut apart = calls.clone();
    apart.dedup();
    let expected =
        ["prims.sort", "rand.uniform", "dnn.softmax", "elementwise.affine", "fft", "fft.forward_in_place"];
    assert_eq!(apart, expected, "{submissions:?}");
    // A sort is several kernels, each by its own name and with its shape.
    let passes: Vec<_> = launched.iter().filter(|(_, name, _)| name.starts_with("prims.sort: ")).collect();
    let of = |name| passes.iter().filter(|(_, known, has_shape)| *known == name && *has_shape).count();
    assert_eq!((of("prims.sort: sort_count"), of("prims.sort: sort_pass")), (1, 4), "{submissions:?}");
    // All of them at the line of the program.
    let lines = |call: &str| -> Vec<u32> {
        let of_call = submissions.iter().filter(|(_, name, ..)| name.starts_with(call));
        of_call.map(|(.., line)| *line).collect()
    };
    let sort = lines("prims.sort");
    assert!(sort.iter().all(|line| *line == sort[0]), "{submissions:?}");
}

#[test]
fn what_calls_do_beside_their_launches_has_the_line_of_the_program() {
    let (_file, submissions, _) = recorded("lines", |gpu| {
        let (solve, sparse) = (Solve::new(gpu), Sparse::new(gpu));
        let a = gpu.upload(&[4.0_f32, 0.0, 0.0, 9.0]).unwrap();
        let (square, b) = (Matrix::new(&a, 2, 2), gpu.upload(&[8.0_f32, 9.0]).unwrap());
        let (column, pivots) = (Matrix::new(&b, 2, 1), gpu.zeros::<i64>(2).unwrap());
        solve.cholesky(square, Triangle::Lower).submit().unwrap().wait().unwrap();
        solve.lu(square, &pivots).submit().unwrap().wait().unwrap();
        solve.lu_solve(square, &pivots, column).submit().unwrap().wait().unwrap();
        let ticket = solve.cholesky_batched(square, Triangle::Lower).submit().unwrap();
        ticket.wait().unwrap();
        ticket.info().check().unwrap();
        let dense = [1.0_f32, 0.0, 2.0, 3.0];
        let matrix: CsrMatrix<f32> = CsrMatrix::from_dense(gpu, (2, 2), &dense).unwrap();
        sparse.check_indices(&matrix).unwrap();
        let product = sparse.product_structure(&matrix, &matrix).unwrap();
        sparse.spgemm(1.0, &matrix, &matrix, None, &product).submit().unwrap();
        let x = gpu.zeros::<f32>(2).unwrap();
        let (lower, stored) = (Triangle::Lower, Diagonal::Stored);
        let call = sparse.triangular_solve(lower, stored, 1.0, &matrix, column, Matrix::new(&x, 2, 1));
        call.submit().unwrap().wait().unwrap();
    });
    // Reading the lines compared them; there is one of each kind of work.
    let has = |call: &str| submissions.iter().any(|(_, name, ..)| name.starts_with(call));
    let calls = [
        "solve.potrf",
        "solve.cholesky_batched: ",
        "sparse.product_structure: ",
        "sparse.spgemm: ",
        "download",
    ];
    assert!(calls.into_iter().all(has), "{submissions:?}");
}

#[test]
fn a_library_image_that_the_program_loads_itself_is_recorded_as_a_library_call() {
    let (_file, submissions, _) = recorded("image", |gpu| {
        let image = kiln_driver::Image::Library("blas.scal element=f32 n=4 x_step=1");
        let module = gpu.load_module(&image).unwrap();
        let scal = module.kernel("blas.scal", None).unwrap();
        let x = gpu.upload(&[1.0_f32; 4]).unwrap();
        // SAFETY: the operation touches the four elements of `x`.
        unsafe { gpu.launch(&scal).grid(1).block(1).read_write(&x).value(2.0_f64).submit() }.unwrap();
        assert_eq!(x.download().unwrap(), [2.0; 4]);
    });
    assert_eq!(launches(&submissions), [(SubmissionKind::Library, "blas.scal", false)]);
}
