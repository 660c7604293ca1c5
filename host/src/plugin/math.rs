//! Which functions of the SDK's mathematics plugins in other languages get.

/// Expands a macro with the signatures of the functions: `name(argument, …);` each, all of `f64`.
macro_rules! for_each_function {
    ($expand:ident) => {
        $expand! {
            exp(x);
            exp2(x);
            log(x);
            log1p(x);
            log2(x);
            log10(x);
            pow(x, y);
            cbrt(x);
            sin(x);
            cos(x);
            tanh(x);
        }
    };
}

pub(super) use for_each_function;
