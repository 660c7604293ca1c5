//! One device with its stream, its compiled kernels and cuBLASLt.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::cublaslt::{CudaBlasLT, Matmul, MatmulConfig};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig,
    PushKernelArg, sys,
};
use half::bf16;

use super::kernels;
use super::libraries::{self, failed};
use crate::engine::EngineError;
use crate::model::ModelConfig;

/// Rows up to which a matrix product is a sequence of dot products; cuBLASLt takes more.
const GEMV_ROWS: usize = 4;

/// An argument of a kernel.
#[derive(Clone, Copy)]
pub(super) enum Arg {
    Pointer(u64),
    Int(i32),
    Long(u64),
    Float(f32),
}

/// A device ready to compute.
pub(super) struct Gpu {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    blas: CudaBlasLT,
    functions: HashMap<&'static str, CudaFunction>,
}

impl Gpu {
    pub(super) fn open(ordinal: usize, config: &ModelConfig) -> Result<Self, EngineError> {
        let context = libraries::open(ordinal)?;
        // SAFETY: everything runs on one stream, in the order of the calls, so no event has to order it.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(failed("making a stream"))?;
        let capability = context
            .compute_capability()
            .map_err(failed("asking the device's architecture"))?;
        let ptx = kernels::compile(config, kernels::architecture(capability))?;
        let module = context.load_module(ptx).map_err(failed("loading the kernels"))?;
        let mut functions = HashMap::new();
        for name in kernels::NAMES {
            let function = module.load_function(name).map_err(failed("finding a kernel"))?;
            functions.insert(name, function);
        }
        let blas = CudaBlasLT::new(stream.clone()).map_err(failed("starting cuBLASLt"))?;
        Ok(Self {
            context,
            stream,
            blas,
            functions,
        })
    }

    /// Device memory for `len` values, all zero.
    pub(super) fn zeros<T: DeviceRepr + cudarc::driver::ValidAsZeroBits>(
        &self,
        len: usize,
    ) -> Result<CudaSlice<T>, EngineError> {
        let slice = self.stream.alloc_zeros(len.max(1));
        slice.map_err(failed("allocating device memory"))
    }

    pub(super) fn upload<T: DeviceRepr>(&self, values: &[T]) -> Result<CudaSlice<T>, EngineError> {
        let slice = self.stream.clone_htod(values);
        slice.map_err(failed("copying to the device"))
    }

    pub(super) fn pointer<T>(&self, slice: &CudaSlice<T>) -> Arg {
        Arg::Pointer(slice.device_ptr(&self.stream).0)
    }

    /// A pointer to value `offset` of `slice`.
    pub(super) fn pointer_at<T>(&self, slice: &CudaSlice<T>, offset: usize) -> Arg {
        Arg::Pointer(slice.device_ptr(&self.stream).0 + (offset * size_of::<T>()) as u64)
    }

    /// Starts a kernel. The arguments must be those that the kernel of this name takes, with memory for its grid.
    pub(super) fn launch(
        &self,
        name: &'static str,
        (grid, threads): ((usize, usize, usize), u32),
        args: &[Arg],
    ) -> Result<(), EngineError> {
        let function = self
            .functions
            .get(name)
            .ok_or(EngineError::Order("no such kernel"))?;
        let mut launch = self.stream.launch_builder(function);
        for arg in args {
            match arg {
                Arg::Pointer(value) | Arg::Long(value) => launch.arg(value),
                Arg::Int(value) => launch.arg(value),
                Arg::Float(value) => launch.arg(value),
            };
        }
        let config = LaunchConfig {
            grid_dim: (grid.0 as u32, grid.1 as u32, grid.2 as u32),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: callers pass what the kernel's declaration takes; `Decoder` sizes every buffer for its rows.
        unsafe { launch.launch(config) }
            .map(|_| ())
            .map_err(failed("starting a kernel"))
    }

    /// `y[rows, n] = x[rows, k] · w[n, k]ᵀ`.
    pub(super) fn project(
        &self,
        (w, n, k): (&CudaSlice<bf16>, usize, usize),
        (x, rows): (&CudaSlice<bf16>, usize),
        y: &mut CudaSlice<bf16>,
    ) -> Result<(), EngineError> {
        if rows <= GEMV_ROWS {
            let name = ["gemv1", "gemv2", "gemv3", "gemv4"][rows - 1];
            let args = [
                self.pointer(w),
                self.pointer(x),
                self.pointer(y),
                Arg::Int(n as i32),
                Arg::Int(k as i32),
            ];
            return self.launch(name, ((n.div_ceil(8), 1, 1), 256), &args);
        }
        let shape = MatmulConfig {
            transa: true,
            transb: false,
            transc: false,
            m: n as u64,
            n: rows as u64,
            k: k as u64,
            alpha: 1.0,
            lda: k as i64,
            ldb: k as i64,
            beta: 0.0,
            ldc: n as i64,
            stride_a: None,
            stride_b: None,
            stride_c: None,
            stride_bias: None,
            batch_size: None,
        };
        // SAFETY: `w` has n·k values, `x` at least rows·k and `y` at least rows·n.
        unsafe { self.blas.matmul(shape, w, x, y, None, None) }.map_err(failed("a product by cuBLASLt"))
    }

    /// An event that takes the device's time here.
    pub(super) fn event(&self) -> Result<CudaEvent, EngineError> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        self.stream
            .record_event(flags)
            .map_err(failed("recording an event"))
    }
}

/// Nanoseconds of the device between two events that have passed.
pub(super) fn between(start: &CudaEvent, end: &CudaEvent) -> Result<u64, EngineError> {
    let ms = start.elapsed_ms(end).map_err(failed("reading an event"))?;
    Ok((f64::from(ms) * 1e6) as u64)
}
