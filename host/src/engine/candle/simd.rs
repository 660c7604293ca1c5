//! Run-time choice of vector instructions for this engine's own loops.

/// Runs `f` compiled for AVX2 and FMA where the processor has them. Only code inlined into it profits: `f` and what it
/// calls need `#[inline(always)]`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    match *V3 {
        Some(v3) => v3.vectorize(f),
        None => f(),
    }
}

/// Runs `f`; other architectures have their vector instructions in the base set.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Proof that the processor has AVX2 and FMA, if it has.
#[cfg(target_arch = "x86_64")]
pub(super) static V3: std::sync::LazyLock<Option<pulp::x86::V3>> =
    std::sync::LazyLock::new(pulp::x86::V3::try_new);

/// Name of the instruction set in use.
pub(super) fn name() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if V3.is_some() {
        return "AVX2";
    }
    "baseline"
}
