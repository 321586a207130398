//! With an `alpha` of 0 the operands that it multiplies are not read, whatever they hold, on every device.

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Blas, Diagonal, F8E4M3, Matrix, Real, Side, Triangle};
use kiln_libs::sparse::{CooMatrix, CsrMatrix, Determinism, Sparse};

use crate::rig::everywhere_and_in_workers;

/// Two rows of two.
fn square<T: Real>(buffer: &GpuRef<T>) -> Matrix<'_, T> {
    Matrix::new(buffer, 2, 2)
}

struct Case<'a, T: Real> {
    gpu: &'a DeviceRuntime,
    bad: GpuRef<T>,
    values: [T; 4],
    /// What they are after a multiplication with `beta`.
    scaled: [T; 4],
    alpha: f64,
    beta: Option<f64>,
}

impl<T: Real + PartialEq + std::fmt::Debug> Case<'_, T> {
    fn result(&self) -> GpuRef<T> {
        self.gpu.upload(&self.values).unwrap()
    }

    #[track_caller]
    fn expect(&self, what: &str, found: &GpuRef<T>, wanted: [T; 4]) {
        let found = found.download().unwrap();
        assert_eq!(found, wanted, "{what} with {:?} and {:?}", self.alpha, self.beta);
    }

    fn dense(&self) {
        let (blas, bad, alpha, beta) = (Blas::new(self.gpu), &self.bad, self.alpha, self.beta);
        let part = bad.view(..2).unwrap();
        for matrix in [square(bad), square(bad).transposed()] {
            let y = self.result();
            blas.gemv(alpha, matrix, &part, beta, &y.view(..2).unwrap()).submit().unwrap();
            let [first, second, ..] = self.scaled;
            self.expect("gemv", &y, [first, second, self.values[2], self.values[3]]);
            for side in [Side::Left, Side::Right] {
                let c = self.result();
                let symm = (matrix, Triangle::Lower);
                blas.symm(side, alpha, symm, square(bad), beta, square(&c)).submit().unwrap();
                self.expect("symm", &c, self.scaled);
                let zeros = [T::default(); 4];
                let (c, kind) = (self.result(), (Triangle::Lower, Diagonal::Stored));
                blas.trmm(side, alpha, matrix, kind, square(bad), square(&c)).submit().unwrap();
                self.expect("trmm", &c, zeros);
                let b = self.result();
                blas.trsm(side, alpha, matrix, kind, square(&b)).submit().unwrap();
                self.expect("trsm", &b, zeros);
                let b = self.gpu.upload(&bad.download().unwrap()).unwrap();
                blas.trsm(side, alpha, matrix, kind, square(&b)).submit().unwrap();
                self.expect("trsm of what is no number", &b, zeros);
            }
            let c = self.result();
            blas.syrk(alpha, matrix, beta, Triangle::Lower, square(&c)).submit().unwrap();
            let [first, _, third, fourth] = self.scaled;
            self.expect("syrk", &c, [first, self.values[1], third, fourth]);
            let c = self.result();
            blas.matmul(matrix, square(bad), square(&c))
                .alpha(alpha)
                .beta(beta.unwrap_or(0.0))
                .submit()
                .unwrap();
            self.expect("matmul", &c, self.scaled);
        }
        let y = self.result();
        blas.axpy(alpha, bad, &y).submit().unwrap();
        self.expect("axpy", &y, self.values);
        let a = self.result();
        blas.ger(alpha, &part, &part, square(&a)).submit().unwrap();
        blas.ger(alpha, &part, &part, square(&a).transposed()).submit().unwrap();
        self.expect("ger", &a, self.values);
        let c = self.result();
        let sum = beta.map(|beta| (beta, self.result()));
        let sum = sum.as_ref().map(|(beta, b)| (*beta, square(b)));
        blas.geam(alpha, square(bad), sum, square(&c)).submit().unwrap();
        self.expect("geam", &c, self.scaled);
    }

    fn sparse(&self) {
        let (sparse, alpha, beta) = (Sparse::new(self.gpu), self.alpha, self.beta);
        let bad = self.bad.download().unwrap();
        let csr: CsrMatrix<T> = CsrMatrix::from_dense(self.gpu, (2, 2), &bad).unwrap();
        let coo: CooMatrix<T> = CooMatrix::from_dense(self.gpu, (2, 2), &bad).unwrap();
        let part = self.bad.view(..2).unwrap();
        let [first, second, ..] = self.scaled;
        let wanted = [first, second, self.values[2], self.values[3]];
        let any = Determinism::Any;
        let y = self.result();
        sparse.spmv(any, alpha, &csr, &part, beta, &y.view(..2).unwrap()).submit().unwrap();
        self.expect("spmv", &y, wanted);
        let y = self.result();
        sparse.spmv(any, alpha, csr.transposed(), &part, beta, &y.view(..2).unwrap()).submit().unwrap();
        self.expect("spmv of a transpose", &y, wanted);
        let y = self.result();
        sparse.spmv(any, alpha, &coo, &part, beta, &y.view(..2).unwrap()).submit().unwrap();
        self.expect("spmv of coordinates", &y, wanted);
        let c = self.result();
        sparse.spmm(any, alpha, &csr, square(&self.bad), beta, square(&c)).submit().unwrap();
        self.expect("spmm", &c, self.scaled);
        let c = sparse.product_structure(&csr, &csr).unwrap();
        c.values().upload(&self.values).unwrap();
        sparse.spgemm(alpha, &csr, &csr, beta, &c).submit().unwrap();
        self.expect("spgemm", c.values(), self.scaled);
        let lower = [(0, 0, bad[0]), (1, 0, bad[1]), (1, 1, bad[2])];
        let lower: CsrMatrix<T> = CsrMatrix::from_triplets(self.gpu, (2, 2), &lower).unwrap();
        let x = self.result();
        let solved = sparse.triangular_solve(
            Triangle::Lower,
            Diagonal::Stored,
            alpha,
            &lower,
            square(&self.bad),
            square(&x),
        );
        solved.submit().unwrap().wait().unwrap();
        self.expect("triangular_solve", &x, [T::default(); 4]);
    }
}

fn all<T: Real + PartialEq + std::fmt::Debug>(gpu: &DeviceRuntime, of: fn(f32) -> T) {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for alpha in [0.0, -0.0] {
            for beta in [None, Some(0.0), Some(1.0), Some(2.0)] {
                let factor = beta.unwrap_or(0.0) as f32;
                let values = [10.0_f32, 20.0, 30.0, 40.0];
                let case = Case {
                    gpu,
                    bad: gpu.upload(&[of(value); 4]).unwrap(),
                    values: values.map(of),
                    scaled: values.map(|number| of(number * factor)),
                    alpha,
                    beta,
                };
                case.dense();
                case.sparse();
            }
        }
    }
}

#[test]
fn operands_with_a_factor_of_zero_are_not_read() {
    everywhere_and_in_workers("operands_with_a_factor_of_zero_are_not_read", |gpu| {
        all::<f32>(gpu, |number| number);
        all::<f64>(gpu, f64::from);
    });
}

/// With scale factors in device memory: those that are no numbers, and such that were never written.
#[test]
fn scale_factors_with_a_factor_of_zero_or_without_terms_are_not_read() {
    everywhere_and_in_workers("scale_factors_with_a_factor_of_zero_or_without_terms_are_not_read", |gpu| {
        let blas = Blas::new(gpu);
        let (ones, one) = (gpu.upload(&[F8E4M3(0x38); 256]).unwrap(), gpu.upload(&[1.0_f32]).unwrap());
        let scale = |value| gpu.upload(&[value]).unwrap();
        let unwritten = gpu.allocate::<f32>(1).unwrap();
        for bad in [scale(f32::NAN), scale(f32::INFINITY), scale(0.0), unwritten] {
            for (alpha, terms) in [(0.0, 16), (-0.0, 16), (1.0, 0), (0.0, 0)] {
                for (beta, wanted) in [(0.0, 0.0), (1.0, 7.0), (2.0, 14.0)] {
                    for scales in [[&bad, &one], [&one, &bad], [&bad, &bad]] {
                        let c = gpu.allocate::<f32>(256).unwrap();
                        let (a, b) = (Matrix::new(&ones, 16, terms), Matrix::new(&ones, 16, terms));
                        let product = || {
                            let call = blas.matmul(a, b.transposed(), Matrix::new(&c, 16, 16));
                            call.scales(scales[0], scales[1]).alpha(alpha).beta(beta)
                        };
                        c.upload(&[7.0; 256]).unwrap();
                        product().submit().unwrap();
                        assert_eq!(c.download().unwrap(), [wanted; 256], "{alpha} {terms} {beta}");
                        c.upload(&[7.0; 256]).unwrap();
                        product().prepare().unwrap().submit(&ones, &ones, &c).unwrap();
                        assert_eq!(c.download().unwrap(), [wanted; 256], "prepared: {alpha} {terms} {beta}");
                        c.upload(&[7.0; 256]).unwrap();
                        let mut graph = gpu.graph();
                        product().record(&mut graph).unwrap();
                        graph.build().unwrap().replay().unwrap();
                        assert_eq!(c.download().unwrap(), [wanted; 256], "recorded: {alpha} {terms} {beta}");
                    }
                }
            }
        }
    });
}

#[test]
fn scale_factors_that_are_not_read_must_still_fit() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let (ones, two) = (gpu.upload(&[F8E4M3(0x38); 256]).unwrap(), gpu.upload(&[1.0_f32; 2]).unwrap());
    let (one, c) = (two.view(..1).unwrap(), gpu.zeros::<f32>(256).unwrap());
    for (alpha, terms) in [(0.0, 16), (1.0, 0)] {
        let (a, b) = (Matrix::new(&ones, 16, terms), Matrix::new(&ones, 16, terms).transposed());
        let product = |a_scale, b_scale| {
            let call = blas.matmul(a, b, Matrix::new(&c, 16, 16)).alpha(alpha);
            call.scales(a_scale, b_scale).submit().map(drop).unwrap_err().to_string()
        };
        let text = product(&two, &one);
        assert!(text.contains("`a_scale` has 2 elements and must have 1"), "{text}");
        let inside = c.view(..1).unwrap();
        let text = product(&one, &inside);
        assert!(text.contains("`b_scale`") && text.contains("share memory"), "{text}");
    }
}
