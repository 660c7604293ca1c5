// Shared by every kernel. No header of the toolkit is included, so that NVRTC needs nothing but itself.
// The host defines HEAD_DIM (32, 64, 96 or 128), GROUP (query heads per key/value head) and BLOCK_TOKENS.
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define FULL 0xffffffffu
#define NEG_BIG -1e30f

// A bf16 is the upper half of an f32.
__device__ __forceinline__ float widen(u16 b) { return __uint_as_float((u32)b << 16); }
__device__ __forceinline__ float low(u32 p) { return __uint_as_float(p << 16); }
__device__ __forceinline__ float high(u32 p) { return __uint_as_float(p & 0xffff0000u); }
__device__ __forceinline__ u32 pack(float lo, float hi) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
__device__ __forceinline__ u16 narrow(float f) { return (u16)pack(f, 0.0f); }

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(FULL, v, o);
    return v;
}

// Row of a pool that holds `position` of a sequence whose blocks are listed in `table`.
__device__ __forceinline__ size_t slot_of(const int* table, int position) {
    return (size_t)table[position / BLOCK_TOKENS] * BLOCK_TOKENS + position % BLOCK_TOKENS;
}
