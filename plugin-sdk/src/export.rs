//! The macro that puts a collector behind all doors.

/// Exports a [`Collector`](crate::Collector) through the door that the crate is built for:
///
/// * always as built-in, for programs that link the crate;
/// * as a native library when built with `--cfg lmb_door="dylib"`;
/// * as a component when built for `wasm32`.
///
/// `lm-bench plugin build` passes the right options. Use it once per crate, with the collector's type:
/// `lm_bench_plugin::export!(MyCollector);`
#[macro_export]
macro_rules! export {
    ($collector:ty) => {
        const _: () = {
            use $crate::Collector as _;

            const LENGTH: usize = $crate::manifest::length(&<$collector>::INFO, <$collector>::METRICS);
            const BYTES: [u8; LENGTH] =
                $crate::manifest::bytes::<LENGTH>(&<$collector>::INFO, <$collector>::METRICS);

            // A library has nobody to register with, and its manifest stands in it once.
            #[allow(
                unexpected_cfgs,
                reason = "the crate that exports need not know the cfg of the door"
            )]
            #[cfg(not(lmb_door = "dylib"))]
            const _: () = {
                $crate::__export_builtin!($collector, BYTES);
            };
            // What describes the collector is a component of its own, which `plugin build` asks once.
            #[allow(
                unexpected_cfgs,
                reason = "the crate that exports need not know the cfg of the door"
            )]
            #[cfg(not(lmb_door = "description"))]
            const _: () = {
                $crate::__export_wasm!($collector, BYTES, LENGTH);
            };
            #[allow(
                unexpected_cfgs,
                reason = "the crate that exports need not know the cfg of the door"
            )]
            #[cfg(lmb_door = "description")]
            const _: () = {
                $crate::__export_description!($collector);
            };
            #[allow(
                unexpected_cfgs,
                reason = "the crate that exports need not know the cfg of the door"
            )]
            #[cfg(lmb_door = "dylib")]
            const _: () = {
                $crate::__export_dylib!(
                    BYTES,
                    LENGTH,
                    $crate::__private::abi::CollectorV1,
                    $crate::dylib::table::<$collector>(),
                    $crate::manifest::COLLECTOR_INTERFACE
                );
            };
        };
    };
}

/// Registers a [`Collector`](crate::Collector) as built-in only; a crate may do so for several collectors.
#[cfg(not(target_arch = "wasm32"))]
#[macro_export]
macro_rules! export_builtin {
    ($collector:ty) => {
        const _: () = {
            use $crate::Collector as _;

            const LENGTH: usize = $crate::manifest::length(&<$collector>::INFO, <$collector>::METRICS);
            const BYTES: [u8; LENGTH] =
                $crate::manifest::bytes::<LENGTH>(&<$collector>::INFO, <$collector>::METRICS);
            $crate::__export_builtin!($collector, BYTES);
        };
    };
}

/// Exports a [`Probe`](crate::Probe) as a native library, the only door that probes have. Use it once per crate:
/// `lm_bench_plugin::export_probe!(MyProbe);`
#[cfg(not(target_arch = "wasm32"))]
#[macro_export]
macro_rules! export_probe {
    ($probe:ty) => {
        const _: () = {
            use $crate::Probe as _;

            const LENGTH: usize = $crate::manifest::probe_length(&<$probe>::INFO, <$probe>::KINDS);
            const BYTES: [u8; LENGTH] =
                $crate::manifest::probe_bytes::<LENGTH>(&<$probe>::INFO, <$probe>::KINDS);

            #[allow(
                unexpected_cfgs,
                reason = "the crate that exports need not know the cfg of the door"
            )]
            #[cfg(lmb_door = "dylib")]
            const _: () = {
                $crate::__export_dylib!(
                    BYTES,
                    LENGTH,
                    $crate::__private::abi::ProbeV1,
                    $crate::dylib::probe_table::<$probe>(),
                    $crate::manifest::PROBE_INTERFACE
                );
            };
            // Elsewhere the manifest is made all the same, so that what is wrong with it shows early.
            const _: &[u8] = &BYTES;
        };
    };
}

/// Registers with the host that links the crate.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_builtin {
    ($collector:ty, $bytes:ident) => {
        $crate::__private::inventory::submit! {
            $crate::builtin::Builtin {
                manifest: &$bytes,
                config_schema: $crate::erased::config_schema::<$collector>,
                subscribe: $crate::erased::subscribe::<$collector>,
                open: $crate::erased::open::<$collector>,
            }
        }
    };
}

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_builtin {
    ($($anything:tt)*) => {};
}

/// Exports the component's functions.
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_wasm {
    ($collector:ty, $bytes:ident, $length:ident) => {
        #[unsafe(link_section = "lmb:manifest")]
        #[used]
        static MANIFEST: [u8; $length] = $bytes;

        // The generated macro takes a name, not a path.
        type Component = $crate::wasm::Component<$collector>;
        $crate::wasm::__export_component!(Component with_types_in $crate::wasm);
    };
}

#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_wasm {
    ($($anything:tt)*) => {};
}

/// Exports the one function of a description.
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_description {
    ($collector:ty) => {
        type Description = $crate::wasm::description::Description<$collector>;
        $crate::wasm::description::__export_description_component!(
            Description with_types_in $crate::wasm::description
        );
    };
}

#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_description {
    ($($anything:tt)*) => {};
}

/// Exports the C entry and, beside it, the `abi_stable` root.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_dylib {
    ($bytes:ident, $length:ident, $table_type:ty, $table:expr, $offered:expr) => {
        use $crate::__private::abi;

        #[cfg_attr(target_os = "linux", unsafe(link_section = ".lmb.manifest"))]
        #[used]
        static MANIFEST: [u8; $length] = $bytes;
        static TABLE: $table_type = $table;

        unsafe extern "C" fn interface(id: abi::Bytes) -> *const ::core::ffi::c_void {
            $crate::dylib::interface(id, $offered, &TABLE)
        }

        #[unsafe(export_name = "lmb_entry_v1")]
        static ENTRY: abi::EntryV1 = abi::EntryV1 {
            magic: abi::MAGIC,
            size: ::core::mem::size_of::<abi::EntryV1>() as u32,
            flags: 0,
            manifest: abi::Bytes::of(&MANIFEST),
            interface,
        };

        extern "C" fn root() -> $crate::dylib::RootModuleResult {
            extern "C" fn manifest() -> $crate::dylib::RStr<'static> {
                $crate::dylib::text(&MANIFEST)
            }
            extern "C" fn interface(id: $crate::dylib::RStr<'_>) -> *const ::core::ffi::c_void {
                $crate::dylib::interface(abi::Bytes::of(id.as_str().as_bytes()), $offered, &TABLE)
            }
            fn load() -> abi::RustEntryRef {
                $crate::dylib::leak(abi::RustEntry {
                    manifest,
                    interface,
                })
            }
            $crate::dylib::load_root(load)
        }

        // abi_stable's own attribute cannot be used here: it writes an attribute that edition 2024 refuses
        // and paths that need abi_stable as a direct dependency of the plugin.
        #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
        static ROOT: $crate::dylib::LibHeader = $crate::dylib::root_header(root);
    };
}
