#![allow(warnings, clippy::all, clippy::unwrap_used, clippy::print_stdout, clippy::panic, clippy::expect_used)]
use half::{bf16, f16};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_libs::blas::{Activation, Blas, Diagonal, F8E4M3, Math, Matrix, Side, Triangle, Vector};
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::elementwise::{Combination, ElementFunction, Elementwise};
use kiln_libs::fft::{Fft, Scale};
use kiln_libs::prims::{Predicate, Primitives, ReduceOperator, ScanOperator};
use kiln_libs::rand::{Bernoulli, Bits, Integers, LogNormal, Normal, Permutation, Sampler, Uniform};
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CooMatrix, CscMatrix, CsrMatrix, Determinism, Sparse};
use num_complex::Complex32;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
type R = Result<(), Box<dyn Error>>;
static OKS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
fn run(name: &str, verbose: bool, f: impl FnOnce() -> R) {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => { OKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed); if verbose { println!("ok    {name}") } }
        Ok(Err(e)) => println!("ERR   {name}: {e}"),
        Err(_) => println!("PANIC {name}"),
    }
}
macro_rules! t { ($n:expr, $($b:tt)*) => { run($n, false, || { $($b)*; Ok(()) }) } }
macro_rules! v { ($n:expr, $($b:tt)*) => { run($n, true, || { $($b)*; Ok(()) }) } }
macro_rules! same { ($a:expr, $b:expr) => { { let (a, b) = ($a, $b); if a != b { return Err(format!("VALUE {:?} instead of {:?}", a, b).into()); } } } }

struct H { gpu: DeviceRuntime, blas: Blas, fft: Fft, sol: Solve, sp: Sparse, dnn: Dnn, el: Elementwise, pr: Primitives, ra: Sampler }
impl H { fn new(gpu: DeviceRuntime) -> Self { H { blas: Blas::new(&gpu), fft: Fft::new(&gpu), sol: Solve::new(&gpu), sp: Sparse::new(&gpu), dnn: Dnn::new(&gpu), el: Elementwise::new(&gpu), pr: Primitives::new(&gpu), ra: Sampler::new(&gpu), gpu } } }
fn lcg(n: usize, seed: u64) -> Vec<f64> { let mut s = seed.wrapping_mul(0x9E3779B97F4A7C15) | 1; (0..n).map(|_| { s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); ((s >> 33) as f64 / (1u64 << 31) as f64) * 2.0 - 1.0 }).collect() }
fn f(n: usize, seed: u64) -> Vec<f32> { lcg(n, seed).into_iter().map(|x| x as f32).collect() }

fn empty(h: &H) -> R {
    let g = &h.gpu;
    let z = g.allocate::<f32>(0)?; let z64 = g.allocate::<f64>(0)?;
    let s = g.upload(&[7.0_f32; 16])?; let one = g.upload(&[5.0_f32])?; let i64one = g.upload(&[9_i64])?;
    let m = |b, r, c| Matrix::<f32>::new(b, r, c);
    for (r, k, c) in [(0, 4, 4), (4, 4, 0), (0, 0, 4), (0, 4, 0), (4, 0, 0), (0, 0, 0)] {
        for zz in [&z, &s] {
            let nm = format!("matmul {r}x{k}x{c} zero-buf {}", zz.len() == 0);
            t!(&nm, { let a = if r * k == 0 { zz } else { &s }; let b = if k * c == 0 { zz } else { &s }; let o = g.upload(&[1.0f32; 16])?; let cc = if r * c == 0 && zz.len() == 0 { &z } else { &o };
                h.blas.matmul(m(a, r, k), m(b, k, c), m(cc, r, c)).beta(0.5).alpha(2.0).submit()?.wait()?; same!(o.download()?, vec![1.0; 16]);
                h.blas.matmul(m(a, r, k), m(b, k, c), m(cc, r, c)).prepare()?.submit(a, b, cc)?.wait()?; same!(o.download()?, vec![1.0; 16]);
                h.blas.matmul(m(a, r, k).transposed(), m(b, k, c), m(cc, k, c)).operation().is_ok();
                let tu = h.blas.matmul(m(a, r, k), m(b, k, c), m(cc, r, c)).tune()?; same!((tu.measured, tu.time), (0, Duration::ZERO));
                let mut gr = g.graph(); h.blas.matmul(m(a, r, k), m(b, k, c), m(cc, r, c)).record(&mut gr)?; gr.build()?.replay()?; same!(o.download()?, vec![1.0; 16]);
                h.blas.matmul(m(a, r, k), m(b, k, c), m(cc, r, c)).load()? });
        }
    }
    t!("matmul k=0 beta", { let o = g.upload(&[2.0f32; 6])?; h.blas.matmul(m(&z, 2, 0), m(&z, 0, 3), m(&o, 2, 3)).beta(0.5).submit()?; same!(o.download()?, vec![1.0; 6]); });
    t!("matmul k=0 bias relu", { let o = g.allocate::<f32>(6)?; let b = g.upload(&[-1.0f32, 2.0, 3.0])?; h.blas.matmul(m(&z, 2, 0), m(&z, 0, 3), m(&o, 2, 3)).bias(&b).activation(Activation::Relu).submit()?; same!(o.download()?, vec![0.0, 2.0, 3.0, 0.0, 2.0, 3.0]); });
    t!("matmul k=0 prepared graph", { let o = g.upload(&[2.0f32; 6])?; let p = h.blas.matmul(m(&z, 2, 0), m(&z, 0, 3), m(&o, 2, 3)).beta(0.5).prepare()?; p.submit(&z, &z, &o)?; p.submit(&z, &z, &o)?; same!(o.download()?, vec![0.5; 6]); });
    t!("matmul k=0 batch", { let o = g.upload(&[2.0f32; 12])?; h.blas.matmul(m(&z, 2, 0).batch(2), m(&z, 0, 3).batch(2), m(&o, 2, 3).batch(2)).beta(2.0).submit()?; same!(o.download()?, vec![4.0; 12]); });
    t!("matmul batch 0", { let o = g.upload(&[2.0f32; 12])?; h.blas.matmul(m(&s, 2, 2).batch(0), m(&s, 2, 3).batch(0), m(&o, 2, 3).batch(0)).submit()?; h.blas.matmul(m(&z, 2, 2).batch(0), m(&z, 2, 3).batch(0), m(&z, 2, 3).batch(0)).submit()?.wait()?; same!(o.download()?, vec![2.0; 12]); });
    t!("matmul i8 k=0", { let zi = g.allocate::<i8>(0)?; let o = g.upload(&[3_i32; 16])?; h.blas.matmul(Matrix::new(&zi, 4, 0), Matrix::new(&zi, 4, 0).transposed(), Matrix::new(&o, 4, 4)).beta(2.0).submit()?; same!(o.download()?, vec![6; 16]); });
    t!("matmul f8 k=0", { let zi = g.allocate::<F8E4M3>(0)?; let o = g.allocate::<f32>(256)?; h.blas.matmul(Matrix::new(&zi, 16, 0), Matrix::new(&zi, 16, 0).transposed(), Matrix::new(&o, 16, 16)).submit()?; same!(o.download()?, vec![0.0; 256]); });
    t!("matmul f16 k=0", { let zi = g.allocate::<f16>(0)?; let o = g.allocate::<f16>(4)?; h.blas.matmul(Matrix::new(&zi, 2, 0), Matrix::new(&zi, 0, 2), Matrix::new(&o, 2, 2)).submit()?; same!(o.download()?, vec![f16::ZERO; 4]); });
    t!("gemv 0 rows", { h.blas.gemv(1.0, m(&z, 0, 3), &g.upload(&[1.0f32; 3])?, None, &z).submit()? });
    t!("gemv 0 cols", { let y = g.upload(&[4.0f32; 3])?; h.blas.gemv(1.0, m(&z, 3, 0), &z, Some(0.5), &y).submit()?; same!(y.download()?, vec![2.0; 3]); h.blas.gemv(1.0, m(&z, 3, 0), &z, None, &y).submit()?; same!(y.download()?, vec![0.0; 3]) });
    t!("ger 0", { h.blas.ger(1.0, &z, &s.view(..3)?, m(&z, 0, 3)).submit()?; h.blas.ger(1.0, &s.view(..3)?, &z, m(&z, 3, 0)).submit()? });
    t!("dot nrm2 asum", { for q in 0..3 { let r = g.upload(&[5.0f32])?; match q { 0 => h.blas.dot(&z, &z, &r).submit()?, 1 => h.blas.nrm2(&z, &r).submit()?, _ => h.blas.asum(&z, &r).submit()? }; same!(r.download()?, vec![0.0]); } });
    t!("axpy scal copy swap", { h.blas.axpy(1.0, &z, &z).submit()?; let zb = g.allocate::<f32>(0)?; h.blas.axpy(1.0, &z, &zb).submit()?; h.blas.scal(2.0, &z).submit()?; h.blas.copy(&z, &zb).submit()?; h.blas.swap(&z, &zb).submit()?; h.blas.axpy(0.0, &z, &zb).submit()? });
    v!("iamax 0 (is refused by docs)", { h.blas.iamax(&z, &i64one).submit()? });
    t!("syrk k=0", { let o = g.upload(&[2.0f32; 4])?; h.blas.syrk(1.0, m(&z, 2, 0), Some(0.5), Triangle::Lower, m(&o, 2, 2)).submit()?; same!(o.download()?, vec![1.0, 2.0, 1.0, 1.0]); h.blas.syrk(1.0, m(&z, 2, 0), None, Triangle::Upper, m(&o, 2, 2)).submit()?; same!(o.download()?, vec![0.0, 0.0, 1.0, 0.0]) });
    t!("syrk n=0", { h.blas.syrk(1.0, m(&z, 0, 3), None, Triangle::Lower, m(&z, 0, 0)).submit()? });
    for side in [Side::Left, Side::Right] {
        t!("symm 0", { let (r, c) = if side == Side::Left { (0, 3) } else { (3, 0) }; h.blas.symm(side, 1.0, (m(&z, 0, 0), Triangle::Lower), m(&z, r, c), Some(1.0), m(&g.allocate::<f32>(0)?, r, c)).submit()?; let (r, c) = (c, r); h.blas.symm(side, 1.0, (m(&s, 3, 3), Triangle::Lower), m(&z, r, c), Some(1.0), m(&g.allocate::<f32>(0)?, r, c)).submit()? });
        t!("trmm 0", { let (r, c) = if side == Side::Left { (0, 3) } else { (3, 0) }; h.blas.trmm(side, 1.0, m(&z, 0, 0), (Triangle::Lower, Diagonal::Stored), m(&z, r, c), m(&g.allocate::<f32>(0)?, r, c)).submit()?; let (r, c) = (c, r); h.blas.trmm(side, 1.0, m(&s, 3, 3), (Triangle::Lower, Diagonal::Stored), m(&z, r, c), m(&g.allocate::<f32>(0)?, r, c)).submit()? });
        t!("trsm 0", { let (r, c) = if side == Side::Left { (0, 3) } else { (3, 0) }; h.blas.trsm(side, 1.0, m(&z, 0, 0), (Triangle::Lower, Diagonal::Stored), m(&z, r, c)).submit()?; let (r, c) = (c, r); h.blas.trsm(side, 1.0, m(&s, 3, 3), (Triangle::Lower, Diagonal::Stored), m(&z, r, c)).submit()? });
    }
    t!("geam transpose 0", { let zb = g.allocate::<f32>(0)?; h.blas.geam(1.0, m(&z, 0, 3), Some((1.0, m(&z, 0, 3))), m(&zb, 0, 3)).submit()?; h.blas.transpose(m(&z, 0, 3), m(&zb, 3, 0)).submit()?; h.blas.geam(0.0, m(&z, 3, 0), None, m(&zb, 3, 0)).submit()? });
    // fft
    let zc = g.allocate::<Complex32>(0)?; let c4 = g.upload(&[Complex32::new(1.0, 2.0); 4])?;
    for sc in [Scale::None, Scale::ByLength, Scale::Unitary, Scale::Factor(2.0)] {
        t!("fft batch 0", { let zo = g.allocate::<Complex32>(0)?; h.fft.transform(&[4]).batch(0).scale(sc).forward(&zc, &zo).submit()?; h.fft.transform(&[4]).batch(0).scale(sc).forward_in_place(&c4).submit()?; same!(c4.download()?[0], Complex32::new(1.0, 2.0)); h.fft.transform(&[4]).batch(0).scale(sc).real_forward(&z, &zo).submit()?; h.fft.transform(&[4, 4]).batch(0).scale(sc).real_inverse(&zc, &z).submit()?; h.fft.transform(&[4, 4]).batch(0).scale(sc).real_inverse_in_place(&zc).submit()? });
        t!("fft extent 0", { let zo = g.allocate::<Complex32>(0)?; h.fft.transform(&[0]).scale(sc).forward(&zc, &zo).submit()?; h.fft.transform(&[0, 4]).scale(sc).inverse(&zc, &zo).submit()?; h.fft.transform(&[4, 0, 2]).scale(sc).forward_in_place(&zo).submit()?; });
        t!("fft real extent 0: spectrum of one zero", { let o = g.upload(&[Complex32::new(1.0, 2.0); 3])?; h.fft.transform(&[0]).batch(3).scale(sc).real_forward(&z, &o).submit()?; same!(o.download()?, vec![Complex32::new(0.0, 0.0); 3]); let o = g.upload(&[Complex32::new(1.0, 2.0); 3])?; h.fft.transform(&[3, 0]).scale(sc).real_forward(&z, &o).submit()?; same!(o.download()?, vec![Complex32::new(0.0, 0.0); 3]) });
        t!("fft real inverse extent 0", { let o = g.upload(&[Complex32::new(1.0, 2.0); 3])?; h.fft.transform(&[0]).batch(3).scale(sc).real_inverse(&o, &z).submit()?.wait()? });
        t!("fft real inplace extent 0", { let o = g.upload(&[Complex32::new(1.0, 2.0); 3])?; h.fft.transform(&[0]).batch(3).scale(sc).real_forward_in_place(&o).submit()?.wait()?; same!(o.download()?, vec![Complex32::new(0.0, 0.0); 3]); let o = g.upload(&[Complex32::new(1.0, 2.0); 3])?; h.fft.transform(&[0]).batch(3).scale(sc).real_inverse_in_place(&o).submit()?.wait()? });
        t!("fft graph batch 0", { let zo = g.allocate::<Complex32>(0)?; let mut gr = g.graph(); h.fft.transform(&[4]).batch(0).scale(sc).forward(&zc, &zo).record(&mut gr)?; gr.build()?.replay()? });
    }
    // solve
    let piv0 = g.allocate::<i64>(0)?; let piv = g.upload(&[1_i64, 2])?; let lu = g.upload(&[2.0f32, 0.0, 0.0, 4.0])?; let z4 = g.allocate::<f32>(0)?;
    t!("lu_solve 0 rhs", { h.sol.lu_solve(m(&lu, 2, 2), &piv, m(&z, 2, 0)).submit()?.wait()?; h.sol.lu_solve(m(&lu, 2, 2), &piv, m(&z, 0, 2).transposed()).submit()?.wait()?; let mut gr = g.graph(); let (_, i) = h.sol.lu_solve(m(&lu, 2, 2), &piv, m(&z, 2, 0)).record(&mut gr)?; gr.build()?.replay()?; i.check()?; h.sol.lu_solve(m(&lu, 2, 2), &piv, m(&z, 2, 0)).load()?; same!(h.sol.lu_solve(m(&lu, 2, 2), &piv, m(&z, 2, 0)).submit()?.info().word().download()?, vec![0]) });
    t!("lu_solve order 0", { h.sol.lu_solve(m(&z, 0, 0), &piv0, m(&z4, 0, 3)).submit()?.wait()? });
    t!("cholesky_solve 0 rhs", { h.sol.cholesky_solve(m(&lu, 2, 2), Triangle::Lower, m(&z, 2, 0)).submit()?.wait()? });
    t!("cholesky_solve order 0", { h.sol.cholesky_solve(m(&z, 0, 0), Triangle::Lower, m(&z4, 0, 3)).submit()?.wait()? });
    let tau0 = g.allocate::<f32>(0)?; let tau = g.upload(&[0.0f32; 2])?;
    t!("apply_q 0", { for si in [Side::Left, Side::Right] { let (r, c) = if si == Side::Left { (2, 0) } else { (0, 2) }; h.sol.apply_q(si, m(&lu, 2, 2).transposed(), &tau, m(&z, c, r).transposed()).submit()?.wait()?; h.sol.apply_q_transposed(si, m(&lu, 2, 2).transposed(), &tau, m(&z, r, c)).submit()?.wait()? } });
    t!("apply_q no reflections", { let o = g.upload(&[1.0f32, 2.0, 3.0, 4.0])?; h.sol.apply_q(Side::Left, m(&z, 0, 2).transposed(), &tau0, m(&o, 2, 2).transposed()).submit()?.wait()?; same!(o.download()?, vec![1.0, 2.0, 3.0, 4.0]) });
    t!("form_q 0 columns", { h.sol.form_q(m(&z, 0, 2).transposed(), &tau0).submit()?.wait()? });
    t!("least_squares 0 rhs", { let a = g.upload(&[1.0f32, 2.0, 3.0])?; h.sol.least_squares(m(&a, 1, 3).transposed(), m(&z, 0, 3).transposed()).submit()?.wait()?; same!(a.download()?, vec![1.0, 2.0, 3.0]) });
    t!("least_squares 0 columns", { let b = g.upload(&[1.0f32, 2.0, 3.0])?; h.sol.least_squares(m(&z, 0, 3).transposed(), m(&b, 1, 3).transposed()).submit()?.wait()?; same!(b.download()?, vec![1.0, 2.0, 3.0]) });
    v!("refuse: lu 0", { h.sol.lu(m(&z, 0, 0), &piv0).submit()?.wait()? });
    v!("refuse: cholesky 0", { h.sol.cholesky(m(&z, 0, 0), Triangle::Lower).submit()?.wait()? });
    v!("refuse: qr 0", { h.sol.qr(m(&z, 0, 3).transposed(), &tau0).submit()?.wait()? });
    v!("refuse: eig 0", { h.sol.eigenvalues(m(&z, 0, 0), Triangle::Lower, &tau0).submit()?.wait()? });
    v!("refuse: svd 0", { h.sol.singular_values(m(&z, 0, 0), &tau0).submit()?.wait()? });
    t!("batched 0", { h.sol.cholesky_batched(m(&z, 2, 2).batch(0), Triangle::Lower).submit()?.wait()?; h.sol.lu_batched(m(&z, 2, 2).batch(0), &piv0).submit()?.wait()?; h.sol.lu_solve_batched(m(&z, 2, 2).batch(0), &piv0, m(&z4, 2, 1).batch(0)).submit()?.wait()?; h.sol.cholesky_solve_batched(m(&z, 2, 2).batch(0), Triangle::Lower, m(&z4, 2, 1).batch(0)).submit()?.wait()?;
        let mut gr = g.graph(); let (_, i) = h.sol.lu_batched(m(&z, 2, 2).batch(0), &piv0).record(&mut gr)?; gr.build()?.replay()?; i.check()?; same!(i.words().len(), 0) });
    t!("batched order 0", { h.sol.cholesky_batched(m(&z, 0, 0).batch(3), Triangle::Lower).submit()?.wait()?; let t = h.sol.lu_batched(m(&z, 0, 0).batch(3), &piv0).submit()?; t.wait()?; same!(t.info().words().download()?, vec![0; 3]); h.sol.lu_solve_batched(m(&z, 0, 0).batch(3), &piv0, m(&z4, 0, 2).batch(3)).submit()?.wait()? });
    t!("batched 0 rhs", { let a = g.upload(&[2.0f32; 8])?; let p = g.upload(&[1_i64, 2, 1, 2])?; h.sol.lu_solve_batched(m(&a, 2, 2).batch(2), &p, m(&z, 2, 0).batch(2)).submit()?.wait()?; h.sol.cholesky_solve_batched(m(&a, 2, 2).batch(2), Triangle::Upper, m(&z, 2, 0).batch(2)).submit()?.wait()? });
    // sparse
    let i0 = g.allocate::<i32>(0)?;
    for (r, c) in [(0usize, 3usize), (3, 0), (0, 0), (3, 4)] {
        let nm = format!("sparse {r}x{c} no elements");
        t!(&nm, { let a: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (r, c), &[])?; let cs: CscMatrix<f32> = CscMatrix::from_triplets(g, (r, c), &[])?; let co: CooMatrix<f32> = CooMatrix::from_triplets(g, (r, c), &[])?;
            for v in 0..6 { let x = g.upload(&vec![1.0f32; if v < 3 { c } else { r }])?; let y = g.upload(&vec![4.0f32; if v < 3 { r } else { c }])?;
                let d = Determinism::Any;
                let a2 = match v { 0 => (&a).into(), 1 => (&cs).into(), 2 => (&co).into(), 3 => a.transposed(), 4 => cs.transposed(), _ => co.transposed() };
                let (rr, ck) = if v < 3 { (r, c) } else { (c, r) };
                h.sp.spmv(d, 1.0, a2, &x, Some(0.5), &y).submit()?; same!(y.download()?, vec![2.0f32; rr]); h.sp.spmv(d, 1.0, a2, &x, None, &y).submit()?; same!(y.download()?, vec![0.0f32; rr]);
                let b = g.upload(&vec![1.0f32; ck * 2])?; let o = g.upload(&vec![4.0f32; rr * 2])?; h.sp.spmm(d, 1.0, a2, m(&b, ck, 2), Some(0.5), m(&o, rr, 2)).submit()?; same!(o.download()?, vec![2.0f32; rr * 2]);
                h.sp.spmm(d, 1.0, a2, m(&b, ck, 0), Some(0.5), m(&o, rr, 0)).submit()?; same!(o.download()?, vec![2.0f32; rr * 2]);
                let de = g.upload(&vec![4.0f32; rr * ck])?; h.sp.to_dense(a2, m(&de, rr, ck)).submit()?; same!(de.download()?, vec![0.0f32; rr * ck]);
                h.sp.check_indices(a2)?;
                let t1: CsrMatrix<f32> = CsrMatrix::allocate(g, (rr, ck), 0)?; h.sp.convert(a2, &t1).submit()?; same!(t1.offsets().download()?, vec![0; rr + 1]);
                let t1: CscMatrix<f32> = CscMatrix::allocate(g, (rr, ck), 0)?; h.sp.convert(a2, &t1).submit()?; same!(t1.offsets().download()?, vec![0; ck + 1]);
                let t1: CooMatrix<f32> = CooMatrix::allocate(g, (rr, ck), 0)?; h.sp.convert(a2, &t1).submit()?.wait()?;
                let t1: CooMatrix<f32> = CooMatrix::allocate(g, (ck, rr), 0)?; h.sp.convert(a2, t1.transposed()).submit()?.wait()?;
            }
            h.sp.sort_coordinates(&co, &CooMatrix::allocate(g, (r, c), 0)?).submit()?;
            let b: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (c, 2), &[])?; let p = h.sp.product_structure(&a, &b)?; same!((p.shape(), p.nonzeros()), ((r, 2), 0)); h.sp.spgemm(1.0, &a, &b, None, &p).submit()?; h.sp.spgemm(1.0, &a, &b, Some(2.0), &p).submit()?;
            let de = g.upload(&vec![0.0f32; r * c])?; let of = g.upload(&vec![7_i32; r + 1])?; h.sp.count_nonzeros(m(&de, r, c), &of).submit()?; same!(of.download()?, vec![0; r + 1]); h.sp.copy_nonzeros(m(&de, r, c), &CsrMatrix::from_buffers((r, c), of.clone(), i0.clone(), z.clone())?).submit()?.wait()?;
            let a3: CsrMatrix<f32, i64> = CsrMatrix::from_dense(g, (r, c), &vec![0.0; r * c])?; same!(a3.nonzeros(), 0);
        });
    }
    t!("spgemm product empty, c with structure, beta", { let a: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (2, 3), &[])?; let b: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (3, 2), &[])?; let c: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (2, 2), &[(0, 0, 4.0), (1, 1, 6.0)])?; h.sp.spgemm(1.0, &a, &b, Some(0.5), &c).submit()?; same!(c.values().download()?, vec![2.0, 3.0]); h.sp.spgemm(1.0, &a, &b, None, &c).submit()?; same!(c.values().download()?, vec![0.0, 0.0]) });
    t!("spgemm inner 0", { let a: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (2, 0), &[])?; let b: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (0, 2), &[])?; let p = h.sp.product_structure(&a, &b)?; same!(p.shape(), (2, 2)); let c: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (2, 2), &[(0, 0, 4.0), (1, 1, 6.0)])?; h.sp.spgemm(1.0, &a, &b, Some(0.5), &c).submit()?; same!(c.values().download()?, vec![2.0, 3.0]); });
    t!("sptrsv 0", { let a: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (0, 0), &[])?; h.sp.triangular_solve(Triangle::Lower, Diagonal::Stored, 1.0, &a, m(&z, 0, 3), m(&z4, 0, 3)).submit()?.wait()?; let a: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (2, 2), &[(0, 0, 1.0), (1, 1, 2.0)])?; h.sp.triangular_solve(Triangle::Lower, Diagonal::Stored, 1.0, &a, m(&z, 2, 0), m(&z4, 2, 0)).submit()?.wait()?; h.sp.triangular_solve(Triangle::Upper, Diagonal::Stored, 1.0, a.transposed(), m(&z, 2, 0), m(&z, 2, 0)).submit()?.wait()?; let n: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (2, 2), &[])?; let b = g.upload(&[2.0f32, 4.0])?; h.sp.triangular_solve(Triangle::Upper, Diagonal::Unit, 0.5, &n, m(&b, 2, 1), m(&b, 2, 1)).submit()?.wait()?; same!(b.download()?, vec![1.0, 2.0]); });
    t!("sptrsv no elements Stored 0 rhs", { let n: CsrMatrix<f32> = CsrMatrix::from_triplets(g, (2, 2), &[])?; h.sp.triangular_solve(Triangle::Upper, Diagonal::Stored, 0.5, &n, m(&z, 2, 0), m(&z, 2, 0)).submit()?.wait()? });
    // dnn
    let tn = |b, d| Tensor::<f32>::new(b, d);
    t!("conv 0 images", { h.dnn.convolution(tn(&z, [0, 3, 8, 8]), tn(&g.zeros(4 * 27)?, [4, 3, 3, 3]), tn(&z4, [0, 4, 6, 6])).submit()?; let dw = g.upload(&vec![3.0f32; 108])?; h.dnn.convolution_backward_filter(tn(&z, [0, 3, 8, 8]), tn(&z4, [0, 4, 6, 6]), tn(&dw, [4, 3, 3, 3])).submit()?; same!(dw.download()?, vec![0.0; 108]); h.dnn.convolution_backward_data(tn(&z4, [0, 4, 6, 6]), tn(&dw, [4, 3, 3, 3]), tn(&z, [0, 3, 8, 8])).submit()? });
    t!("conv 0 channels", { let y = g.upload(&vec![3.0f32; 4 * 36])?; h.dnn.convolution(tn(&z, [1, 0, 8, 8]), tn(&z4, [4, 0, 3, 3]), tn(&y, [1, 4, 6, 6])).submit()?; same!(y.download()?, vec![0.0; 144]); h.dnn.convolution_backward_filter(tn(&z, [1, 0, 8, 8]), tn(&y, [1, 4, 6, 6]), tn(&z4, [4, 0, 3, 3])).submit()?; h.dnn.convolution_backward_data(tn(&y, [1, 4, 6, 6]), tn(&z4, [4, 0, 3, 3]), tn(&z, [1, 0, 8, 8])).submit()? });
    t!("conv 0 filters", { let x = g.upload(&vec![3.0f32; 64])?; h.dnn.convolution(tn(&x, [1, 1, 8, 8]), tn(&z, [0, 1, 3, 3]), tn(&z4, [1, 0, 6, 6])).submit()?; h.dnn.convolution_backward_data(tn(&z4, [1, 0, 6, 6]), tn(&z, [0, 1, 3, 3]), tn(&x, [1, 1, 8, 8])).submit()?; same!(x.download()?, vec![0.0; 64]); });
    v!("refuse: conv 0 height", { h.dnn.convolution(tn(&z, [1, 1, 0, 8]), tn(&g.zeros(9)?, [1, 1, 3, 3]), tn(&z4, [1, 1, 0, 6])).padding([1, 0]).submit()? });
    t!("pool 0", { h.dnn.max_pool(tn(&z, [0, 3, 8, 8]), [2, 2], tn(&z4, [0, 3, 4, 4])).submit()?; h.dnn.average_pool(tn(&z, [2, 0, 8, 8]), [2, 2], tn(&z4, [2, 0, 4, 4])).submit()?; h.dnn.max_pool_backward(tn(&z, [0, 3, 8, 8]), tn(&z4, [0, 3, 4, 4]), [2, 2], &g.allocate(0)?).submit()?; h.dnn.average_pool_backward(tn(&z4, [0, 3, 4, 4]), [2, 2], tn(&z, [0, 3, 8, 8])).submit()? });
    let zh = g.allocate::<f16>(0)?; let zh2 = g.allocate::<f16>(0)?;
    t!("attention 0", { let at = |b, d| AttentionTensor::<f16>::new(b, d); h.dnn.attention(at(&zh, [0, 2, 4, 8]), at(&zh, [0, 2, 4, 8]), at(&zh, [0, 2, 4, 8]), at(&zh2, [0, 2, 4, 8])).submit()?; let k = g.zeros::<f16>(64)?; h.dnn.attention(at(&zh, [1, 2, 0, 8]), at(&k, [1, 2, 4, 8]), at(&k, [1, 2, 4, 8]), at(&zh2, [1, 2, 0, 8])).submit()?; h.dnn.attention(at(&zh, [1, 0, 3, 8]), at(&zh, [1, 0, 4, 8]), at(&zh, [1, 0, 4, 8]), at(&zh2, [1, 0, 3, 8])).submit()? });
    t!("attention 0 causal_bottom_right", { let at = |b, d| AttentionTensor::<f16>::new(b, d); let k = g.zeros::<f16>(64)?; h.dnn.attention(at(&zh, [1, 2, 0, 8]), at(&k, [1, 2, 4, 8]), at(&k, [1, 2, 4, 8]), at(&zh2, [1, 2, 0, 8])).causal_bottom_right().submit()? });
    v!("refuse: attention no keys", { let at = |b, d| AttentionTensor::<f16>::new(b, d); let k = g.zeros::<f16>(64)?; h.dnn.attention(at(&k, [1, 2, 4, 8]), at(&zh, [1, 2, 0, 8]), at(&zh, [1, 2, 0, 8]), at(&g.zeros(64)?, [1, 2, 4, 8])).submit()? });
    t!("rows 0", { h.dnn.softmax(&z, 4, &z4).submit()?; h.dnn.softmax(&z, 4, &z).log().submit()?; h.dnn.softmax_backward(&z, &z4, 4, &g.allocate(0)?).submit()?; let sc = g.allocate::<f32>(0)?; h.dnn.layer_norm(&z, 4, &z4).weight(&g.upload(&[1.0f32; 4])?).bias(&g.upload(&[1.0f32; 4])?).means(&sc).scales(&g.allocate(0)?).submit()?; h.dnn.rms_norm(&z, 4, &z4).submit()? });
    t!("norm backward 0 rows", { let sc = g.allocate::<f32>(0)?; let (wg, bg) = (g.upload(&[3.0f32; 4])?, g.upload(&[3.0f32; 4])?); h.dnn.layer_norm_backward(&z, &z4, (&sc, &sc), 4, &g.allocate(0)?).weight_gradient(&wg).bias_gradient(&bg).submit()?; same!((wg.download()?, bg.download()?), (vec![0.0; 4], vec![0.0; 4])) });
    v!("?: softmax 0 columns", { h.dnn.softmax(&z, 0, &z4).submit()? });
    v!("?: layer_norm 0 columns", { h.dnn.layer_norm(&z, 0, &z4).submit()? });
    t!("cross entropy 0", { let l = g.allocate::<i32>(0)?; h.dnn.cross_entropy(&z, 4, &l, &z4).submit()?; h.dnn.cross_entropy_backward(&z, 4, &l, &z4, &g.allocate(0)?).submit()? });
    t!("embedding 0", { let ix = g.allocate::<i32>(0)?; let tb = g.upload(&[1.0f32; 8])?; h.dnn.embedding(&tb, 4, &ix, &z).submit()?; let tg = g.upload(&[1.0f32; 8])?; h.dnn.embedding_backward(&ix, 4, &z, &tg).submit()?; same!(tg.download()?, vec![0.0; 8]) });
    t!("embedding no table", { let ix = g.upload(&[0_i32, 1])?; let o = g.upload(&[1.0f32; 8])?; h.dnn.embedding(&z, 4, &ix, &o).submit()?; same!(o.download()?.iter().all(|x| x.is_nan()), true); h.dnn.embedding_backward(&ix, 4, &o, &z).submit()? });
    v!("?: embedding 0 columns", { let ix = g.upload(&[0_i32, 1])?; h.dnn.embedding(&z, 0, &ix, &z4).submit()? });
    // elementwise
    t!("elementwise 0", { h.el.apply(ElementFunction::Gelu, &z, &z).submit()?; h.el.apply_backward(ElementFunction::Gelu, &z, &z4, &z).submit()?; h.el.combine(Combination::Add, &z, &z, &z4).submit()?; h.el.affine(2.0, &z, 1.0, &z4).submit()?; h.el.cast(&z, &g.allocate::<i8>(0)?).submit()? });
    // prims
    let u0 = g.allocate::<u32>(0)?; let u02 = g.allocate::<u32>(0)?; let q0 = g.allocate::<u64>(0)?;
    t!("prims 0", { let o = g.upload(&[9_u32])?; h.pr.reduce(&u0, ReduceOperator::Sum, &o).submit()?; same!(o.download()?, vec![0]); h.pr.reduce(&u0, ReduceOperator::Product, &o).submit()?; same!(o.download()?, vec![1]); h.pr.reduce(&u0, ReduceOperator::Min, &o).submit()?; same!(o.download()?, vec![u32::MAX]); let fo = g.upload(&[9f32])?; h.pr.reduce(&z, ReduceOperator::Max, &fo).submit()?; same!(fo.download()?, vec![f32::NEG_INFINITY]);
        h.pr.scan_inclusive(&u0, ScanOperator::Sum, &u0).submit()?; h.pr.scan_exclusive(&u0, ScanOperator::Sum, 3, &u02).submit()?; h.pr.sort(&u0, &u02).submit()?; h.pr.sort(&u0, &u0).bits(4..4).submit()?; h.pr.sort_by_key(&u0, &u0, &u02, &g.allocate::<u32>(0)?).submit()? });
    t!("prims 0 b", { let cn = g.upload(&[9_u64])?; h.pr.select(&u0, Predicate::Greater(1), &u02, &cn).indices(&q0).submit()?; same!(cn.download()?, vec![0]); let cn = g.upload(&[9_u64])?; h.pr.select_flagged(&u0, &g.allocate(0)?, &u02, &cn).submit()?; same!(cn.download()?, vec![0]); let cn = g.upload(&[9_u64])?; h.pr.unique(&u0, &u02, &cn).lengths(&q0).submit()?; same!(cn.download()?, vec![0]); let hi = g.upload(&[9_u64; 3])?; h.pr.histogram(&u0, 0..30, &hi).submit()?; same!(hi.download()?, vec![0; 3]); h.pr.histogram(&g.upload(&[1_u32])?, 0..30, &q0).submit().is_err(); h.pr.top(&u0, &u02).submit()?; h.pr.top(&g.upload(&[1_u32])?, &u02).indices(&q0).submit()? });
    t!("prims segments 0", { let o = g.upload(&[9_u32; 2])?; h.pr.reduce_segments(&u0, &g.upload(&[0_u32, 0, 0])?, ReduceOperator::Sum, &o).submit()?; same!(o.download()?, vec![0, 0]); h.pr.reduce_segments(&u0, &g.upload(&[0_u32])?, ReduceOperator::Sum, &u02).submit()? });
    v!("?: segments no offsets", { h.pr.reduce_segments(&u0, &u02, ReduceOperator::Sum, &g.allocate(0)?).submit()? });
    v!("?: histogram no bins", { h.pr.histogram(&g.upload(&[1_u32])?, 0..30, &q0).submit()? });
    v!("refuse: arg_min 0", { h.pr.arg_min(&u0, &g.upload(&[9_u64])?).submit()? });
    t!("rand 0", { h.ra.draw(1).fill(&u0, Bits)?; h.ra.draw(1).fill(&z, Uniform)?; h.ra.draw(1).fill(&z, Normal { mean: 0.0, deviation: 1.0 })?; h.ra.draw(1).fill(&g.allocate::<u8>(0)?, Bernoulli { probability: 0.5 })?; h.ra.draw(1).fill(&u0, Permutation)?; h.ra.draw(1).fill(&u0, Integers { first: 1, last: 2 })?; h.ra.draw(1).offset(u64::MAX).fill(&u0, Bits)?; let mut gr = g.graph(); h.ra.draw(1).record(&mut gr, &u0, Bits)?; gr.build()?.replay()? });
    g.main_stream().synchronize()?;
    Ok(())
}

fn absurd(h: &H) -> R {
    let g = &h.gpu; let s = g.upload(&[1.0f32; 16])?; let s2 = g.upload(&[1.0f32; 16])?; let o = g.upload(&[1.0f32; 16])?; let p = g.upload(&[1_i64; 16])?;
    let c = g.upload(&[Complex32::new(1.0, 0.0); 16])?; let c2 = g.upload(&[Complex32::new(1.0, 0.0); 16])?; let hf = g.upload(&[f16::ONE; 64])?; let hf2 = g.upload(&[f16::ONE; 64])?;
    let u = g.upload(&[1u32; 16])?;
    let m = |b, r, c| Matrix::<f32>::new(b, r, c); let tn = |b, d| Tensor::<f32>::new(b, d); let at = |b, d| AttentionTensor::<f16>::new(b, d);
    for n in [usize::MAX, usize::MAX / 2, 1 << 62, 1 << 32, (1 << 32) + 1, (1 << 31) - 1, 1 << 31, usize::MAX / 4 + 1, usize::MAX/8+1] {
        println!("---- {n}");
        v!("matmul batch", { h.blas.matmul(m(&s, 2, 2).batch(n), m(&s2, 2, 2).batch(n), m(&o, 2, 2).batch(n)).submit()? });
        v!("matmul batch stride0", { h.blas.matmul(m(&s, 2, 2).batch(n).stride(0), m(&s2, 2, 2).batch(n).stride(0), m(&o, 2, 2).batch(n)).submit()? });
        v!("matmul batch all 0 stride", { h.blas.matmul(m(&s, 2, 2).batch(n).stride(0), m(&s2, 2, 2).batch(n).stride(0), m(&o, 2, 2).batch(n).stride(0)).submit()? });
        v!("matmul stride n", { h.blas.matmul(m(&s, 2, 2).batch(2).stride(n), m(&s2, 2, 2).batch(2), m(&o, 2, 2).batch(2)).submit()? });
        v!("matmul leading n", { h.blas.matmul(m(&s, 2, 2).leading(n), m(&s2, 2, 2), m(&o, 2, 2)).submit()? });
        v!("matmul k=n", { h.blas.matmul(m(&s, 0, n), m(&s2, n, 0), m(&o, 0, 0)).submit()? });
        v!("matmul n x 0", { h.blas.matmul(m(&s, n, 0), m(&s2, 0, n), m(&o, n, n)).submit()? });
        v!("matmul batch n of 0x0", { h.blas.matmul(m(&s, 0, 0).batch(n), m(&s2, 0, 0).batch(n), m(&o, 0, 0).batch(n)).submit()? });
        v!("matmul tune n", { h.blas.matmul(m(&s, n, 2), m(&s2, 2, n), m(&o, n, n)).tune()? });
        v!("matmul prepare n", { h.blas.matmul(m(&s, n, 2), m(&s2, 2, n), m(&o, n, n)).prepare()? });
        v!("gemv", { h.blas.gemv(1.0, m(&s, n, n), &s2, None, &o).submit()? });
        v!("vector step", { h.blas.axpy(1.0, Vector::new(&s).step(n), Vector::new(&o).step(n)).submit()? });
        v!("trsm batch", { h.blas.trsm(Side::Left, 1.0, m(&s, 2, 2).batch(n), (Triangle::Lower, Diagonal::Stored), m(&o, 2, 2).batch(n)).submit()? });
        v!("geam", { h.blas.geam(1.0, m(&s, n, 2), Some((1.0, m(&s2, n, 2))), m(&o, n, 2)).submit()? });
        v!("fft batch", { h.fft.transform(&[4]).batch(n).forward(&c, &c2).submit()? });
        v!("fft extent", { h.fft.transform(&[n]).forward(&c, &c2).submit()? });
        v!("fft extents real", { h.fft.transform(&[n, n, n]).batch(n).real_forward(&s, &c2).submit()? });
        v!("fft 0xn", { h.fft.transform(&[0, n]).batch(n).forward_in_place(&c).submit()? });
        v!("fft real nx0", { h.fft.transform(&[n, 0]).batch(n).real_forward(&s, &c).submit()? });
        v!("fft real in place n", { h.fft.transform(&[n]).real_forward_in_place(&c).submit()? });
        v!("lu_batched", { h.sol.lu_batched(m(&s, 2, 2).batch(n), &p).submit()?.wait()? });
        v!("lu_batched order 0", { h.sol.lu_batched(m(&s, 0, 0).batch(n), &p).submit()?.wait()? });
        v!("lu_solve_batched", { h.sol.lu_solve_batched(m(&s, 2, 2).batch(n).stride(0), &p, m(&o, 2, 1).batch(n)).submit()?.wait()? });
        v!("lu_solve_batched rhs n", { h.sol.lu_solve_batched(m(&s, 2, 2).batch(2), &p, m(&o, 2, n).batch(2)).submit()?.wait()? });
        v!("lu_solve_batched 0 rhs batch n stride 0", { h.sol.lu_solve_batched(m(&s, 2, 2).batch(n).stride(0), &p, m(&o, 2, 0).batch(n)).submit()?.wait()? });
        v!("cholesky_batched", { h.sol.cholesky_batched(m(&s, n, n).batch(2), Triangle::Lower).submit()?.wait()? });
        v!("cholesky_batched stride", { h.sol.cholesky_batched(m(&s, 2, 2).batch(2).stride(n), Triangle::Lower).submit()?.wait()? });
        v!("cholesky_solve_batched", { h.sol.cholesky_solve_batched(m(&s, 2, 2).batch(n).stride(0), Triangle::Lower, m(&o, 2, 2).batch(n)).submit()?.wait()? });
        v!("lu", { h.sol.lu(m(&s, n, n), &p).submit()?.wait()? });
        v!("lu_solve rhs", { h.sol.lu_solve(m(&s, 2, 2), &p.view(..2)?, m(&o, 2, n)).submit()?.wait()? });
        v!("csr allocate shape", { CsrMatrix::<f32>::allocate(g, (n, n), 4)? });
        v!("csr64 allocate shape", { CsrMatrix::<f32, i64>::allocate(g, (n, 4), 4)? });
        v!("csr64 allocate nnz", { CsrMatrix::<f32, i64>::allocate(g, (4, 4), n)? });
        v!("coo empty n x n", { let a = CooMatrix::<f32, i64>::allocate(g, (n, n), 0)?; h.sp.to_dense(&a, m(&o, n, n)).submit()? });
        v!("coo from_triplets", { CooMatrix::<f32, i64>::from_triplets(g, (n, n), &[(n - 1, n - 1, 1.0)])? });
        v!("coo from_dense", { CooMatrix::<f32, i64>::from_dense(g, (n, n), &[1.0])? });
        v!("coo from_dense n x 0", { CooMatrix::<f32, i64>::from_dense(g, (n, 0), &[])? });
        v!("csr from_dense n x 0", { CsrMatrix::<f32, i64>::from_dense(g, (n, 0), &[])? });
        v!("csr from_triplets n", { if n < (1 << 33) { return Ok(()) } CsrMatrix::<f32, i64>::from_triplets(g, (n, 2), &[])? });
        v!("csr upload", { CsrMatrix::<f32>::upload(g, (n, 2), &[0], &[], &[])? });
        v!("csc upload", { CscMatrix::<f32>::upload(g, (2, n), &[0], &[], &[])? });
        v!("count_nonzeros", { h.sp.count_nonzeros(m(&s, n, 2), &g.zeros::<i32>(3)?).submit()? });
        v!("conv", { h.dnn.convolution(tn(&s, [n, n, 2, 2]), tn(&s2, [1, n, 1, 1]), tn(&o, [n, 1, 2, 2])).submit()? });
        v!("conv padding", { h.dnn.convolution(tn(&s, [1, 1, 2, 2]), tn(&s2, [1, 1, 1, 1]), tn(&o, [1, 1, 2, 2])).padding([n, n]).submit()? });
        v!("conv stride", { h.dnn.convolution(tn(&s, [1, 1, 2, 2]), tn(&s2, [1, 1, 1, 1]), tn(&o, [1, 1, 1, 1])).stride([n, n]).submit()? });
        v!("conv dilation", { h.dnn.convolution(tn(&s, [1, 1, 2, 2]), tn(&s2, [1, 1, 2, 2]), tn(&o, [1, 1, 1, 1])).dilation([n, n]).submit()? });
        v!("conv groups", { h.dnn.convolution(tn(&s, [1, 2, 2, 2]), tn(&s2, [2, 1, 1, 1]), tn(&o, [1, 2, 2, 2])).groups(n).submit()? });
        v!("pool window", { h.dnn.max_pool(tn(&s, [1, 1, 4, 4]), [n, n], tn(&o, [1, 1, 1, 1])).submit()? });
        v!("pool padding", { h.dnn.average_pool(tn(&s, [1, 1, 4, 4]), [2, 2], tn(&o, [1, 1, 1, 1])).padding([n, n]).submit()? });
        v!("pool stride", { h.dnn.average_pool(tn(&s, [1, 1, 4, 4]), [2, 2], tn(&o, [1, 1, 1, 1])).stride([n, n]).submit()? });
        v!("pool dims", { h.dnn.average_pool(tn(&s, [n, n, 4, 4]), [2, 2], tn(&o, [n, n, 2, 2])).submit()? });
        v!("pool dims with 0", { h.dnn.average_pool(tn(&s, [0, n, n, n]), [1, 1], tn(&o, [0, n, n, n])).submit()? });
        v!("attention", { h.dnn.attention(at(&hf, [n, 1, 1, 8]), at(&hf, [n, 1, 1, 8]), at(&hf, [n, 1, 1, 8]), at(&hf2, [n, 1, 1, 8])).submit()? });
        v!("attention heads", { h.dnn.attention(at(&hf, [0, n, n, 8]), at(&hf, [0, n, n, 8]), at(&hf, [0, n, n, 8]), at(&hf2, [0, n, n, 8])).submit()? });
        v!("softmax columns", { h.dnn.softmax(&s, n, &o).submit()? });
        v!("layer_norm columns", { h.dnn.layer_norm(&s, n, &o).submit()? });
        v!("cross columns", { h.dnn.cross_entropy(&s, n, &g.zeros::<i32>(4)?, &o).submit()? });
        v!("embedding columns", { h.dnn.embedding(&s, n, &g.zeros::<i32>(4)?, &o).submit()? });
        v!("rand offset", { h.ra.draw(1).offset(n as u64).fill(&u, Bits)?.wait()? });
        v!("rand offset normal", { h.ra.draw(1).offset(n as u64).fill(&s, Normal { mean: 0.0, deviation: 1.0 })?.wait()? });
        v!("sort bits", { h.pr.sort(&u, &u).bits(0..n as u32).submit()? });
    }
    g.main_stream().synchronize()?;
    Ok(())
}
include!("audit_lib2.inc");
fn main() {
    kiln::worker_entry();
    let case = std::env::args().nth(1).unwrap_or_default();
    let sim = || H::new(DeviceRuntime::simulated(1).unwrap());
    let r = match case.as_str() { "empty" => empty(&sim()), "absurd" => absurd(&sim()), other => more(other) };
    if let Err(e) = &r { println!("CASE ENDED: {e}") }
    println!("{case}: {} ok", OKS.load(std::sync::atomic::Ordering::Relaxed));
}
