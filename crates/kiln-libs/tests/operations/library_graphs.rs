//! Library calls in graphs and on streams: in order with everything else.

use kiln_libs::blas::{Blas, Determinism, Math, Matrix};
use kiln_libs::fft::{Fft, Scale};

use crate::numbers::made_up;
use crate::rig::everywhere_and_in_workers;

#[test]
fn recorded_calls_are_replayed_in_order() {
    everywhere_and_in_workers("recorded_calls_are_replayed_in_order", |gpu| {
        let (blas, fft) = (Blas::new(gpu), Fft::new(gpu));
        let a = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let x = gpu.upload(&[1.0_f32, 0.0, 0.0, 1.0]).unwrap();
        let y = gpu.zeros::<f32>(4).unwrap();
        let spectrum = gpu.zeros::<[f32; 2]>(3).unwrap();
        let square = |buffer| Matrix::new(buffer, 2, 2);
        let mut graph = gpu.graph();
        blas.matmul(square(&a), square(&x), square(&y)).beta(1.0).record(&mut graph).unwrap();
        blas.scal(2.0, &x).record(&mut graph).unwrap();
        fft.transform(&[4]).scale(Scale::Factor(0.5)).real_forward(&y, &spectrum).record(&mut graph).unwrap();
        assert_eq!(graph.len(), 4);
        let graph = graph.build().unwrap();
        // A graph keeps what its calls need.
        drop((blas, fft));
        for _ in 0..3 {
            graph.replay().unwrap();
        }
        // x is 1, 2 and 4 times the identity.
        assert_eq!(y.download().unwrap(), [7.0, 14.0, 21.0, 28.0]);
        assert_eq!(x.download().unwrap(), [8.0, 0.0, 0.0, 8.0]);
        assert_eq!(spectrum.download().unwrap()[0], [35.0, 0.0]);
    });
}

#[test]
fn calls_on_several_streams_are_ordered_by_their_buffers() {
    everywhere_and_in_workers("calls_on_several_streams_are_ordered_by_their_buffers", |gpu| {
        let blas = Blas::new(gpu);
        let streams = [gpu.stream().unwrap(), gpu.stream().unwrap(), gpu.stream().unwrap()];
        let (x, y) = (gpu.upload(&[1.0_f64; 100]).unwrap(), gpu.upload(&[0.0_f64; 100]).unwrap());
        let dot = gpu.allocate::<f64>(1).unwrap();
        for turn in 0..30 {
            blas.axpy(1.0, &x, &y).on(&streams[turn % 3]).submit().unwrap();
            blas.scal(-1.0, &x).on(&streams[(turn + 1) % 3]).submit().unwrap();
        }
        blas.dot(&y, &y, &dot).on(&streams[0]).submit().unwrap();
        assert_eq!(y.download().unwrap(), [0.0; 100]);
        blas.axpy(1.0, &x, &y).submit().unwrap();
        blas.dot(&x, &y, &dot).on(&streams[2]).submit().unwrap();
        assert_eq!(dot.download().unwrap(), [100.0]);
    });
}

#[test]
fn equal_calls_give_equal_bits_on_every_stream() {
    everywhere_and_in_workers("equal_calls_give_equal_bits_on_every_stream", |gpu| {
        let blas = Blas::new(gpu);
        let (m, n, k) = (24, 40, 100);
        let (a, b) =
            (gpu.upload(&made_up::<f32>(1, m * k)).unwrap(), gpu.upload(&made_up::<f32>(2, k * n)).unwrap());
        let streams: Vec<_> = (0..4).map(|_| gpu.stream().unwrap()).collect();
        let results: Vec<_> = (0..12).map(|_| gpu.allocate::<f32>(m * n).unwrap()).collect();
        for (turn, result) in results.iter().enumerate() {
            let call = blas.matmul(Matrix::new(&a, m, k), Matrix::new(&b, k, n), Matrix::new(result, m, n));
            let call = call.math(Math::Tf32).determinism(Determinism::RunToRun);
            call.on(&streams[turn % 4]).submit().unwrap();
        }
        let first = results[0].download().unwrap();
        assert!(results.iter().all(|result| result.download().unwrap() == first));
    });
}

#[test]
fn workspace_is_counted_as_the_librarys_and_given_back() {
    kiln::testing::check(0..1, |gpu| {
        let fft = Fft::new(gpu);
        let data = gpu.zeros::<[f32; 2]>(1000)?;
        let before = gpu.bytes_outstanding();
        assert_eq!(fft.transform(&[1000]).forward_in_place(&data).load().unwrap(), 8000);
        for _ in 0..10 {
            fft.transform(&[1000]).forward_in_place(&data).submit().unwrap();
        }
        gpu.synchronize()?;
        gpu.reap_pending()?;
        assert!((8000..16_000).contains(&(gpu.bytes_outstanding() - before)), "one workspace for all calls");
        drop(fft);
        gpu.reap_pending()?;
        assert_eq!(gpu.bytes_outstanding(), before);
        Ok(())
    })
    .unwrap();
}
