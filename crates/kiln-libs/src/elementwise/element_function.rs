//! Functions of one number, and their slopes.

/// A function of one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ElementFunction {
    /// `-x`.
    Negate,
    /// `|x|`. Its slope at 0 is 0.
    Absolute,
    /// `1 / x`.
    Reciprocal,
    /// `√x`.
    SquareRoot,
    /// `1 / √x`.
    ReciprocalSquareRoot,
    /// `eˣ`.
    Exponential,
    /// The natural logarithm.
    Logarithm,
    /// The sine.
    Sine,
    /// The cosine.
    Cosine,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e⁻ˣ)`.
    Sigmoid,
    /// `max(x, 0)`, and NaN of NaN. Its slope at 0 is 0.
    Relu,
    /// `x / 2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`, as [`Activation::Gelu`](crate::blas::Activation::Gelu). At infinities value and slope are the limits: 0 and 0 at
    /// -∞, ∞ and 1 at ∞, where the formula is NaN. NaN stays NaN.
    Gelu,
    /// `x / (1 + e⁻ˣ)`. At infinities value and slope are the limits, as for [`Gelu`](Self::Gelu).
    Silu,
}

/// `√(2/π)`.
const GELU_SCALE: f64 = 0.797_884_560_802_865_4;
/// The factor of the cube.
const GELU_CUBE: f64 = 0.044_715;

impl ElementFunction {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Negate,
        Self::Absolute,
        Self::Reciprocal,
        Self::SquareRoot,
        Self::ReciprocalSquareRoot,
        Self::Exponential,
        Self::Logarithm,
        Self::Sine,
        Self::Cosine,
        Self::Tanh,
        Self::Sigmoid,
        Self::Relu,
        Self::Gelu,
        Self::Silu,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Negate => "negate",
            Self::Absolute => "absolute",
            Self::Reciprocal => "reciprocal",
            Self::SquareRoot => "square_root",
            Self::ReciprocalSquareRoot => "reciprocal_square_root",
            Self::Exponential => "exponential",
            Self::Logarithm => "logarithm",
            Self::Sine => "sine",
            Self::Cosine => "cosine",
            Self::Tanh => "hyperbolic_tangent",
            Self::Sigmoid => "sigmoid",
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
        }
    }

    /// Its value of `x`, as an expression in a type.
    pub(super) fn value(self, of: &str) -> String {
        let number = |value: f64| literal(value, of);
        let (zero, one) = (number(0.0), number(1.0));
        match self {
            Self::Negate => "-x".to_owned(),
            Self::Absolute => "abs(x)".to_owned(),
            Self::Reciprocal => format!("{one} / x"),
            Self::SquareRoot => "sqrt(x)".to_owned(),
            Self::ReciprocalSquareRoot => "rsqrt(x)".to_owned(),
            Self::Exponential => "exp(x)".to_owned(),
            Self::Logarithm => "log(x)".to_owned(),
            Self::Sine => "sin(x)".to_owned(),
            Self::Cosine => "cos(x)".to_owned(),
            Self::Tanh => "tanh(x)".to_owned(),
            Self::Sigmoid => format!("{one} / ({one} + exp(-x))"),
            Self::Relu => format!("select(x < {zero}, {zero}, x)"),
            Self::Gelu => {
                let value = format!("{} * x * ({one} + {})", number(0.5), gelu_tangent(of));
                far_from_zero(of, &zero, "x", &value)
            }
            Self::Silu => far_from_zero(of, &zero, "x", &format!("x / ({one} + exp(-x))")),
        }
    }

    /// Its slope at `x`, as an expression in a type.
    pub(super) fn slope(self, of: &str) -> String {
        let number = |value: f64| literal(value, of);
        let (zero, half, one) = (number(0.0), number(0.5), number(1.0));
        match self {
            Self::Negate => number(-1.0),
            Self::Absolute => {
                format!("select(x < {zero}, {}, select(x > {zero}, {one}, x))", number(-1.0))
            }
            Self::Reciprocal => format!("{} / (x * x)", number(-1.0)),
            Self::SquareRoot => format!("{half} / sqrt(x)"),
            Self::ReciprocalSquareRoot => format!("{} * rsqrt(x) / x", number(-0.5)),
            Self::Exponential => "exp(x)".to_owned(),
            Self::Logarithm => format!("{one} / x"),
            Self::Sine => "cos(x)".to_owned(),
            Self::Cosine => "-sin(x)".to_owned(),
            Self::Tanh => format!("({one} - tanh(x)) * ({one} + tanh(x))"),
            Self::Sigmoid => format!("{one} / ({one} + exp(-x)) / ({one} + exp(x))"),
            Self::Relu => format!("select(x > {zero}, {one}, select(x <= {zero}, {zero}, x))"),
            Self::Gelu => {
                let tangent = gelu_tangent(of);
                let inner = format!("{} * ({one} + {} * x * x)", number(GELU_SCALE), number(3.0 * GELU_CUBE));
                let slope = format!(
                    "{half} * ({one} + {tangent}) + {half} * x * ({one} - {tangent}) * ({one} + {tangent}) * {inner}"
                );
                far_from_zero(of, &zero, &one, &slope)
            }
            Self::Silu => {
                let share = format!("({one} / ({one} + exp(-x)))");
                let rest = format!("({one} / ({one} + exp(x)))");
                far_from_zero(of, &zero, &one, &format!("{share} * ({one} + x * {rest})"))
            }
        }
    }
}

fn gelu_tangent(of: &str) -> String {
    let (scale, cube) = (literal(GELU_SCALE, of), literal(GELU_CUBE, of));
    format!("tanh({scale} * (x + {cube} * x * x * x))")
}

/// An expression, with its limits far below and far above 0, where infinities would meet zeros.
fn far_from_zero(of: &str, below: &str, above: &str, value: &str) -> String {
    let (low, high) = (literal(-10_000.0, of), literal(10_000.0, of));
    format!("select(x < {low}, {below}, select(x > {high}, {above}, {value}))")
}

/// A number in a type, by its bits.
fn literal(value: f64, of: &str) -> String {
    match of {
        "f64" => format!("f64#{:016x}", value.to_bits()),
        _ => format!("f32#{:08x}", (value as f32).to_bits()),
    }
}
