// y[m][n] = W[n][k] · x[m][k] for few rows: a warp per row of W, which is read once and past the caches. k is a multiple of 8.
template <int M>
__device__ __forceinline__ void gemv(const u16* w, const u16* x, u16* y, int n, int k) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (row >= n) return;
    const uint4* weights = (const uint4*)(w + (size_t)row * k);
    int chunks = k / 8;
    float acc[M];
#pragma unroll
    for (int m = 0; m < M; m++) acc[m] = 0.0f;
#pragma unroll 4
    for (int i = lane; i < chunks; i += 32) {
        uint4 a = __ldcs(weights + i);
#pragma unroll
        for (int m = 0; m < M; m++) {
            uint4 b = __ldg((const uint4*)(x + (size_t)m * k) + i);
            acc[m] += low(a.x) * low(b.x) + high(a.x) * high(b.x) + low(a.y) * low(b.y) + high(a.y) * high(b.y) +
                      low(a.z) * low(b.z) + high(a.z) * high(b.z) + low(a.w) * low(b.w) + high(a.w) * high(b.w);
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++) {
        float sum = warp_sum(acc[m]);
        if (lane == 0) y[(size_t)m * n + row] = narrow(sum);
    }
}
#define GEMV(M) \
    extern "C" __global__ void __launch_bounds__(256) gemv##M(const u16* w, const u16* x, u16* y, int n, int k) { gemv<M>(w, x, y, n, k); }
GEMV(1) GEMV(2) GEMV(3) GEMV(4)
