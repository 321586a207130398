//! Texts of operations: what is printed is parsed as the same operation, and what is none is refused in words.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use kiln_operation::{
    Activation, Asum, Attention, AttentionLayout, AttentionMask, Axpy, Convolution, ConvolutionPass,
    DenseLayout, Determinism, Diagonal, Dot, ElementType, Epilogue, FftKind, FftOperation, FftShape, Geam,
    Gemv, Geqrf, Ger, Gesvd, Getrf, Getrs, Iamax, IndexType, Layout, Math, Matmul, Nrm2, OperandEffect,
    Operation, OperationError, Orgqr, Ormqr, Potrf, Potrs, Scal, Side, SparseFormat, SparseToDense, Spatial,
    Spmm, Spmv, Swap, Syevd, Symm, Syrk, TensorLayout, Triangle, Trmm, Trsm, VectorCopy,
};
use proptest::prelude::*;
use proptest::sample::select;

fn float() -> impl Strategy<Value = ElementType> {
    select(vec![ElementType::F32, ElementType::F64])
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![1_u64..100, Just(1 << 31), Just((1 << 31) + 7)]
}

fn matmul() -> impl Strategy<Value = Operation> {
    use ElementType::{Bf16, F8E4M3, F16, F32, F64, I8, I32};
    let types = vec![
        (F64, F64, Math::Ieee),
        (F32, F32, Math::Ieee),
        (F32, F32, Math::Tf32),
        (F32, F32, Math::Bf16x9),
        (F16, F16, Math::F16),
        (F16, F32, Math::Ieee),
        (Bf16, Bf16, Math::Ieee),
        (I8, I32, Math::Ieee),
        (F8E4M3, Bf16, Math::Ieee),
    ];
    let sizes = (1_u64..50, 1_u64..50, 1_u64..50, 1_u64..4);
    let flags = (any::<[bool; 4]>(), select(Activation::ALL), select(Determinism::ALL));
    (sizes, select(types), flags, 0_u64..9, any::<u64>()).prop_map(
        |(
            (m, n, k, batch),
            (input, output, math),
            ([ta, tb, bias, accumulate], activation, order),
            gap,
            workspace,
        )| {
            let is_integer = input == I8;
            let layout = |element, transposed, rows: u64, columns: u64| {
                let leading = gap + if transposed { columns } else { rows };
                let far = if transposed { rows } else { columns };
                Layout { element, transposed, leading, stride: leading * far }
            };
            let epilogue = if is_integer { Epilogue::NONE } else { Epilogue { bias, activation } };
            Operation::from(Matmul {
                m,
                n,
                k,
                batch,
                a: layout(input, ta, m, k),
                b: layout(input, tb, k, n),
                d: layout(output, false, m, n),
                math,
                epilogue,
                scaled: input == F8E4M3 && gap % 2 == 0,
                accumulate,
                order,
                workspace,
                alignment: 1 << (4 + gap % 5),
                algorithm: gap % 16,
            })
        },
    )
}

fn others() -> impl Strategy<Value = Operation> {
    (float(), (size(), 1_u64..60), (1_u64..5, 1_u64..5, 0_u64..4), any::<[bool; 4]>(), 0_usize..16).prop_map(
        |(element, (m, n), (x_step, y_step, gap), [one, two, three, four], which)| {
            let triangle = if two { Triangle::Upper } else { Triangle::Lower };
            let side = if three { Side::Left } else { Side::Right };
            let diagonal = if four { Diagonal::Unit } else { Diagonal::Stored };
            let kind = FftKind::ALL[usize::from(one) * 2 + usize::from(two)];
            let m = if (6..8).contains(&which) || which > 12 { m % 97 + 1 } else { m };
            let leading = m + gap;
            let large = m.max(n) + gap;
            match which {
                0 => Gemv { element, m, n, transposed: one, leading, x_step, y_step, accumulate: two }.into(),
                1 => Ger { element, m, n, leading, x_step, y_step }.into(),
                2 => Dot { element, n: m, x_step, y_step }.into(),
                3 => Nrm2 { element, n: m, x_step }.into(),
                4 => Axpy { element, n: m, x_step, y_step }.into(),
                5 => Scal { element, n: m, x_step }.into(),
                6 => {
                    let (a_leading, c_leading) = (large, leading);
                    let (n, k) = (m, n);
                    Syrk { element, n, k, triangle, transposed: one, a_leading, c_leading, accumulate: three }
                        .into()
                }
                8 => VectorCopy { element, n: m, x_step, y_step }.into(),
                9 => Swap { element, n: m, x_step, y_step }.into(),
                10 => Asum { element, n: m, x_step }.into(),
                11 => Iamax { element, n: m, x_step }.into(),
                13 => {
                    let (b_transposed, b_leading) = if three { (two, large) } else { (false, 0) };
                    let (a_transposed, a_leading, c_leading, has_b) = (one, large, leading, three);
                    Geam { element, m, n, a_transposed, a_leading, has_b, b_transposed, b_leading, c_leading }
                        .into()
                }
                14 => {
                    let (a_leading, b_leading, c_leading, accumulate) = (large, leading, m, one);
                    Symm { element, m, n, side, triangle, a_leading, b_leading, c_leading, accumulate }.into()
                }
                15 => {
                    let (a_leading, b_leading, c_leading, transposed) = (large, leading, m, one);
                    Trmm {
                        element,
                        m,
                        n,
                        side,
                        triangle,
                        transposed,
                        diagonal,
                        a_leading,
                        b_leading,
                        c_leading,
                    }
                    .into()
                }
                7 => {
                    let (a_leading, b_leading) = (large, leading);
                    Trsm { element, m, n, side, triangle, transposed: one, diagonal, a_leading, b_leading }
                        .into()
                }
                _ => {
                    let extents = [n, x_step, y_step];
                    let shape =
                        FftShape::new(&extents[..1 + usize::from(three) + usize::from(four)]).unwrap();
                    FftOperation { kind, element, shape, batch: y_step, in_place: three }.into()
                }
            }
        },
    )
}

fn solvers() -> impl Strategy<Value = Operation> {
    let sizes = (1_u64..90, 1_u64..90, 0_u64..4);
    (float(), sizes, any::<[bool; 3]>(), 0_usize..9).prop_map(
        |(element, (m, n, gap), [one, two, three], which)| {
            let triangle = if one { Triangle::Upper } else { Triangle::Lower };
            let side = if two { Side::Left } else { Side::Right };
            let (leading, far) = (m + gap, n + gap);
            match which {
                0 => Potrf { element, n: m, triangle, leading }.into(),
                1 => Potrs { element, n: m, columns: n, triangle, a_leading: leading, b_leading: m }.into(),
                2 => Getrf { element, m, n, leading }.into(),
                3 => {
                    let (columns, transposed) = (n, one);
                    Getrs { element, n: m, columns, transposed, a_leading: m, b_leading: leading }.into()
                }
                4 => Geqrf { element, m, n, leading }.into(),
                5 => {
                    let order = if two { m } else { n };
                    let (k, a_leading, transposed) = (1 + gap.min(order - 1), order + gap, three);
                    Ormqr { element, side, transposed, m, n, k, a_leading, c_leading: leading }.into()
                }
                8 => {
                    let (m, n) = (m.max(n), m.min(n));
                    Orgqr { element, m, n, k: 1 + gap.min(n - 1), leading: m + gap }.into()
                }
                6 => Syevd { element, n: m, triangle, vectors: two, leading }.into(),
                _ => {
                    let (u_leading, v_leading) = if two { (leading, far) } else { (0, 0) };
                    Gesvd { element, m, n, vectors: two, a_leading: leading, u_leading, v_leading }.into()
                }
            }
        },
    )
}

fn sparse() -> impl Strategy<Value = Operation> {
    let sizes = (1_u64..90, 1_u64..90, 1_u64..500, 0_u64..4);
    let kinds = (float(), select(IndexType::ALL), select(DenseLayout::ALL), select(Determinism::ALL));
    (kinds, sizes, any::<[bool; 2]>(), (0_usize..3, select(SparseFormat::ALL))).prop_map(
        |(
            (element, index, layout, order),
            (rows, columns, nonzeros, gap),
            [transposed, accumulate],
            (which, format),
        )| {
            let transposed = transposed && order == Determinism::Any;
            let (n, leading) = (gap + 1, 90 + gap);
            match which {
                0 => Spmv { format, element, index, rows, columns, nonzeros, transposed, accumulate, order }
                    .into(),
                1 => Spmm {
                    format,
                    element,
                    index,
                    rows,
                    columns,
                    nonzeros,
                    n,
                    transposed,
                    layout,
                    b_leading: leading.next_multiple_of(4),
                    c_leading: leading.next_multiple_of(4),
                    accumulate,
                    order,
                }
                .into(),
                _ => {
                    SparseToDense { format, element, index, rows, columns, nonzeros, layout, leading }.into()
                }
            }
        },
    )
}

fn attention() -> impl Strategy<Value = Operation> {
    let kinds = (
        select(vec![ElementType::F16, ElementType::Bf16]),
        select(AttentionLayout::ALL),
        select(Determinism::ALL),
        select(AttentionMask::ALL),
    );
    let sizes = (1_u64..9, 1_u64..5, 1_u64..4, 1_u64..700, 0_u64..700, 1_u64..17);
    (kinds, sizes, any::<u64>()).prop_map(
        |((element, layout, order, mask), (batch, key_heads, times, queries, more, eighths), workspace)| {
            let (heads, head, keys) = (key_heads * times, 8 * eighths, queries + more);
            Operation::from(Attention {
                element,
                layout,
                batch,
                heads,
                key_heads,
                queries,
                keys,
                head,
                mask,
                order,
                workspace,
            })
        },
    )
}

fn convolution() -> impl Strategy<Value = Operation> {
    let types = vec![
        (ElementType::F32, Math::Ieee),
        (ElementType::F32, Math::Tf32),
        (ElementType::F16, Math::Ieee),
        (ElementType::Bf16, Math::Ieee),
    ];
    let kinds =
        (select(ConvolutionPass::ALL), select(types), select(TensorLayout::ALL), select(Determinism::ALL));
    let sizes = (1_u64..4, 1_u64..5, 1_u64..5, 1_u64..4);
    let spatial = |range: std::ops::Range<u64>| {
        (range.clone(), range).prop_map(|(height, width)| Spatial::new(height, width))
    };
    let windows = (spatial(7..20), spatial(1..4), spatial(0..3), spatial(1..4), spatial(1..4));
    (kinds, sizes, windows, any::<u64>()).prop_map(
        |((pass, (element, math), layout, order), (batch, channels, filters, groups), windows, workspace)| {
            let (image, filter, padding, stride, dilation) = windows;
            Operation::from(Convolution {
                pass,
                element,
                layout,
                batch,
                channels: channels * groups,
                image,
                filters: filters * groups,
                filter,
                padding,
                stride,
                dilation,
                groups,
                math,
                order,
                workspace,
            })
        },
    )
}

proptest! {
    #[test]
    fn a_text_is_parsed_as_the_operation_it_was_printed_from(
        operation in prop_oneof![matmul(), others(), solvers(), sparse(), convolution(), attention()]
    ) {
        prop_assert_eq!(operation.check(), Ok(()));
        let text = operation.to_string();
        let parsed: Operation = text.parse().unwrap();
        prop_assert_eq!(parsed, operation);
        prop_assert_eq!(parsed.to_string(), text.clone());
        // The order of keys says nothing.
        let mut words: Vec<&str> = text.split(' ').collect();
        words[1..].reverse();
        prop_assert_eq!(words.join("  ").parse::<Operation>().unwrap(), operation);
        for operand in operation.operands() {
            prop_assert_eq!(operand.effect.is_memory(), operand.bytes > 0);
        }
    }

    #[test]
    fn a_damaged_text_is_an_operation_or_an_error(operation in matmul(), at in 0_usize..200, byte in " -~") {
        let mut text = operation.to_string();
        let at = at % text.len();
        text.replace_range(at..at + 1, &byte);
        if let Ok(parsed) = text.parse::<Operation>() {
            prop_assert_eq!(parsed.to_string().parse::<Operation>(), Ok(parsed));
        }
    }

    #[test]
    fn any_text_is_an_operation_or_an_error(text in ".{0,80}") {
        let _ = text.parse::<Operation>();
    }
}

fn refused(text: &str) -> OperationError {
    text.parse::<Operation>().unwrap_err()
}

#[test]
fn texts_that_are_no_operations_say_what_is_wrong() {
    assert!(refused("").to_string().contains("there are: blas.matmul, "));
    assert!(matches!(refused("blas.axpi n=1"), OperationError::Name { .. }));
    assert!(matches!(refused("blas.scal n"), OperationError::Word { .. }));
    assert!(matches!(refused("blas.scal n=1 n=1"), OperationError::Key { .. }));
    assert!(matches!(refused("blas.scal m=1"), OperationError::Key { .. }));
    assert!(matches!(refused("blas.scal n=1 element=f32"), OperationError::Missing { key: "x_step", .. }));
    for value in ["-1", "01", "1.0", "18446744073709551616", "", "+1"] {
        let error = refused(&format!("blas.scal element=f32 n={value} x_step=1"));
        assert!(matches!(error, OperationError::Value { key: "n", .. }), "{error}");
    }
    let error = refused("blas.scal element=f31 n=1 x_step=1");
    assert_eq!(
        error.to_string(),
        "blas.scal: `element=f31`, where f8e4m3, f16, bf16, f32, f64, i8 or i32 is expected"
    );
}

/// Refuses a text whose values do not fit, and says so with these words.
#[track_caller]
fn shape(text: &str, words: &str) {
    let error = refused(text);
    let is_shape = matches!(error, OperationError::Shape { .. } | OperationError::Operand { .. });
    assert!(is_shape && error.to_string().contains(words), "{error}");
}

#[test]
fn operations_of_networks_that_cannot_be_are_refused() {
    let convolution = |change: (&str, &str)| {
        let text = "dnn.convolution pass=forward element=f32 layout=nchw batch=2 channels=4 image=6x6 filters=4 filter=3x3 padding=0x0 stride=1x1 \
            dilation=1x1 groups=2 math=ieee order=any workspace=0";
        assert!(text.parse::<Operation>().is_ok());
        text.replace(change.0, change.1)
    };
    shape(&convolution(("element=f32", "element=f64")), "elements of f64; use f32, f16 or bf16");
    shape(&convolution(("filters=4", "filters=3")), "4 channels and 3 filters in 2 groups");
    shape(
        &convolution(("filter=3x3", "filter=7x3")),
        "a filter of 7x3 with a dilation of 1x1 in an image of 6x6",
    );
    shape(
        &convolution(("padding=0x0", "padding=18446744073709551615x0")),
        "padding of 18446744073709551615x0",
    );
    shape(&convolution(("stride=1x1", "stride=1x0")), "`stride` is 0");
    shape(&convolution(("math=ieee", "math=bf16x9")), "math bf16x9 for f32");
    shape(&convolution(("batch=2", "batch=16777216")), "`x` has 2415919104 elements; split the batch");
    let error = refused(&convolution(("image=6x6", "image=6")));
    assert!(
        error.to_string().contains("`image=6`, where height and width, such as 3x5 is expected"),
        "{error}"
    );
    let attention = |change: (&str, &str)| {
        let text = "dnn.attention element=f16 layout=heads_first batch=2 heads=4 key_heads=2 queries=5 keys=6 head=64 mask=causal_top_left order=any workspace=0";
        assert!(text.parse::<Operation>().is_ok());
        text.replace(change.0, change.1)
    };
    shape(
        &attention(("element=f16", "element=f32")),
        "elements of f32; use f16 or bf16, or build it of blas.matmul and dnn.softmax",
    );
    shape(&attention(("head=64", "head=68")), "heads of 68 elements; use multiples of 8, up to 128");
    shape(&attention(("head=64", "head=136")), "heads of 136 elements");
    shape(&attention(("key_heads=2", "key_heads=3")), "4 heads of queries for 3 heads of keys");
    shape(&attention(("keys=6", "keys=0")), "`keys` is 0");
    shape(&attention(("queries=5", "queries=5000000")), "`q` has 2560000000 elements");
}

#[test]
fn operands_that_no_memory_holds_are_refused_by_name() {
    shape(
        "blas.scal element=f32 n=4294967296 x_step=4294967296",
        "`x` has 2^59 elements or more: 4294967296 at steps of 4294967296; use smaller sizes",
    );
    shape(
        "blas.ger element=f32 m=4 n=4 leading=18446744073709551615 x_step=1 y_step=1",
        "`a` has 2^59 elements or more: 4 x 4 at steps of 1 x 18446744073709551615; use smaller sizes",
    );
    let text = "fft kind=forward element=f32 shape=18446744073709551615 batch=1 in_place=false";
    shape(text, "`input` has 2^59");
    shape(&text.replace("false", "true"), "`data` has 2^59");
}

#[test]
fn operations_that_cannot_be_are_refused() {
    shape("blas.scal element=f32 n=0 x_step=1", "`n` is 0");
    shape("blas.scal element=f32 n=1 x_step=0", "`x` has a step of 0; use a step of 1 or more");
    shape("blas.scal element=f16 n=1 x_step=1", "elements of f16");
    shape(
        "blas.scal element=f32 n=18446744073709551615 x_step=1",
        "`x` has 2^59 elements or more: 18446744073709551615; use smaller sizes",
    );
    shape("blas.ger element=f32 m=4 n=4 leading=3 x_step=1 y_step=1", "`a` has a leading dimension of 3");
    shape("fft kind=forward element=f32 shape=8x0 batch=1 in_place=false", "`shape` is 0");
    shape("solve.potrf element=f16 n=4 triangle=lower leading=4", "elements of f16");
    shape("solve.potrf element=f32 n=0 triangle=lower leading=4", "`n` is 0");
    shape("solve.getrf element=f32 m=4 n=4 leading=3", "leading dimension of 3");
    shape(
        "solve.ormqr element=f32 side=left transposed=false m=4 n=4 k=5 a_leading=4 c_leading=4",
        "5 Householder vectors of 4 elements",
    );
    shape(
        "solve.orgqr element=f32 m=4 n=5 k=4 leading=4",
        "5 columns of 4 elements out of 4 Householder vectors",
    );
    shape("solve.orgqr element=f32 m=4 n=3 k=4 leading=4", "3 columns of 4 elements");
    let geam = "blas.geam element=f32 m=4 n=4 a_transposed=false a_leading=4 c_leading=4";
    shape(&format!("{geam} has_b=false b_transposed=true b_leading=0"), "no `b`, but b_transposed=true");
    shape(&format!("{geam} has_b=true b_transposed=true b_leading=3"), "leading dimension of 3");
    shape(
        "blas.symm element=f32 m=4 n=5 side=right triangle=upper a_leading=4 b_leading=4 c_leading=4 accumulate=false",
        "leading dimension of 4 for columns of 5",
    );
    shape(
        "blas.trmm element=f16 m=4 n=5 side=left triangle=upper transposed=false diagonal=unit a_leading=4 b_leading=4 c_leading=4",
        "elements of f16",
    );
    shape(
        "solve.gesvd element=f64 m=2147483648 n=1 vectors=false a_leading=2147483648 u_leading=0 v_leading=0",
        "`m` is 2147483648; use sizes below 2^31",
    );
    shape(
        "solve.gesvd element=f64 m=2 n=1 vectors=false a_leading=2 u_leading=2 v_leading=0",
        "vectors that are not computed",
    );
    let attention = "dnn.attention element=f16 layout=heads_first batch=2 heads=4 key_heads=2 queries=7 keys=6 head=64 order=any workspace=0";
    shape(&format!("{attention} mask=causal_bottom_right"), "7 queries at the end of 6 keys");
    let spmv = |rows: u64, nonzeros: u64, rest: &str| {
        format!(
            "sparse.spmv format=csr element=f32 index=i32 rows={rows} columns=5 nonzeros={nonzeros} accumulate=false {rest}"
        )
    };
    shape(&spmv(4, 0, "transposed=false order=any"), "`nonzeros` is 0");
    shape(&spmv(1 << 31, 7, "transposed=false order=any"), "indices of 32 bits; use indices of 64 bits");
    shape(&spmv(4, 7, "transposed=true order=run_to_run"), "equal bits in each run");
    let product = |a: &str, d: &str, math: &str, epilogue: &str, stride: u64| {
        format!(
            "blas.matmul m=4 n=4 k=4 batch=2 a={a}:n:4:16 b={a}:n:4:16 d={d}:n:4:{stride} math={math} epilogue={epilogue} scaled=false accumulate=false order=any workspace=0 alignment=256 algorithm=0"
        )
    };
    assert!(product("f32", "f32", "tf32", "bias+gelu", 16).parse::<Operation>().is_ok());
    let scaled = |a: &str, d: &str| product(a, d, "ieee", "none", 16).replace("scaled=false", "scaled=true");
    assert!(scaled("f8e4m3", "bf16").parse::<Operation>().is_ok());
    shape(&scaled("f16", "f16"), "scale factors for f16; use `alpha`");
    shape(&product("f32", "f64", "ieee", "none", 16), "a product of f32 and f32 into f64");
    shape(&product("f64", "f64", "tf32", "none", 16), "math tf32");
    shape(&product("i8", "i32", "ieee", "relu", 16), "on integers");
    shape(&product("f32", "f32", "ieee", "none", 15), "results 15 elements apart");
    shape(&product("f32", "f32", "ieee", "none", 16).replace("d=f32:n", "d=f32:t"), "a transposed result");
}

#[test]
fn a_result_with_gaps_is_not_overwritten_whole() {
    let effect = |leading: u64, accumulate: bool| {
        let text = format!(
            "blas.matmul m=4 n=4 k=4 batch=1 a=f32:n:4:0 b=f32:n:4:0 d=f32:n:{leading}:0 math=ieee epilogue=none scaled=false accumulate={accumulate} order=any workspace=0 alignment=256 algorithm=0"
        );
        text.parse::<Operation>().unwrap().operands()[2].effect
    };
    assert_eq!(effect(4, false), OperandEffect::Overwrites);
    assert_eq!(effect(5, false), OperandEffect::Writes);
    assert_eq!(effect(4, true), OperandEffect::ReadsAndWrites);
}
