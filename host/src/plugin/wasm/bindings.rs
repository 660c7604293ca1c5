//! Bindings generated from `wit/1.0.0`; lists that go into a guest are borrowed.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]

wasmtime::component::bindgen!({
    path: "../wit/1.0.0",
    world: "metric-collector",
    ownership: Borrowing { duplicate_if_necessary: false },
});
