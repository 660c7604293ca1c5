//! Finds the driver, the libraries of the CUDA toolkit and a device, or says in one line what is missing.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudarc::driver::{CudaContext, sys};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::engine::EngineError;

/// Compute capability from which the kernels' instructions (bf16 `mma`, `cvt.rn.bf16x2`) exist.
const OLDEST: (i32, i32) = (8, 0);
/// Driver interface that the bindings were made for: CUDA 13.0.
const DRIVER: i32 = 13_000;

/// Whether the NVIDIA driver's library can be loaded.
pub fn driver_present() -> bool {
    // SAFETY: loads and unloads libcuda by its name; its initialisers are the driver's own.
    unsafe { sys::is_culib_present() }
}

/// Opens device `ordinal`, with the toolkit's libraries loaded.
pub(super) fn open(ordinal: usize) -> Result<Arc<CudaContext>, EngineError> {
    if !driver_present() {
        return Err(missing("no NVIDIA driver: libcuda.so.1 cannot be loaded"));
    }
    for library in ["nvrtc", "cublasLt"] {
        preload(library);
    }
    // SAFETY: as in `driver_present`.
    let (nvrtc, blas) = unsafe {
        (
            cudarc::nvrtc::sys::is_culib_present(),
            cudarc::cublaslt::sys::is_culib_present(),
        )
    };
    for (found, name) in [(nvrtc, "libnvrtc.so.13"), (blas, "libcublasLt.so.13")] {
        if !found {
            return Err(missing(&format!(
                "{name} is not found; install the CUDA 13 toolkit, or set CUDA_HOME or LD_LIBRARY_PATH to where it is"
            )));
        }
    }
    device(ordinal)
}

fn device(ordinal: usize) -> Result<Arc<CudaContext>, EngineError> {
    let count = CudaContext::device_count().map_err(failed("starting the CUDA driver"))?;
    let mut version = 0;
    // SAFETY: writes one integer.
    let asked = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    asked.result().map_err(failed("asking the driver's version"))?;
    if version < DRIVER {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(missing(&format!(
            "the driver supports CUDA {major}.{minor}, 13.0 is needed; update it to release 580 or newer"
        )));
    }
    if ordinal >= usize::try_from(count).unwrap_or(0) {
        return Err(missing(&format!("no device cuda:{ordinal}: there are {count}")));
    }
    let context = CudaContext::new(ordinal).map_err(failed("opening the device"))?;
    let capability = context
        .compute_capability()
        .map_err(failed("asking the device's architecture"))?;
    if capability < OLDEST {
        let (major, minor) = capability;
        return Err(missing(&format!(
            "cuda:{ordinal} has compute capability {major}.{minor}; 8.0 (Ampere) or newer is needed"
        )));
    }
    Ok(context)
}

/// Loads a library from the usual folders, so that its bare name is found afterwards; the loader's own search path is
/// tried later.
fn preload(name: &str) {
    let file = format!("lib{name}.so.13");
    let Some(path) = folders().into_iter().map(|f| f.join(&file)).find(|p| p.is_file()) else {
        return;
    };
    // SAFETY: a library of the CUDA toolkit by its full path; its initialisers are NVIDIA's own.
    if let Ok(library) = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
        // Stays loaded: the bindings open it again by name.
        std::mem::forget(library);
    }
}

/// Folders of the toolkit and of NVIDIA's Python packages in the active environment.
fn folders() -> Vec<PathBuf> {
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os);
    let homes = homes.map(PathBuf::from);
    let toolkits = homes.chain([PathBuf::from("/usr/local/cuda")]);
    let mut found: Vec<PathBuf> = toolkits
        .flat_map(|home| [home.join("lib64"), home.join("targets/x86_64-linux/lib")])
        .collect();
    if let Some(environment) = env::var_os("VIRTUAL_ENV") {
        let versions = std::fs::read_dir(Path::new(&environment).join("lib"));
        let versions = versions.into_iter().flatten().filter_map(Result::ok);
        found.extend(versions.map(|v| v.path().join("site-packages/nvidia/cu13/lib")));
    }
    found
}

fn missing(what: &str) -> EngineError {
    EngineError::Device(format!("{what}; --device cpu needs none of it"))
}

/// Turns an error of the driver or a library into one line.
pub(super) fn failed<E: std::fmt::Debug>(operation: &'static str) -> impl FnOnce(E) -> EngineError {
    move |error| EngineError::Compute {
        operation,
        message: format!("{error:?}"),
    }
}
