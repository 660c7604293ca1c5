// Causal attention of one sequence's new tokens on tensor cores (mma m16n8k16): a block takes 64 queries of one head,
// a warp 16 of them; keys and values come through shared memory, 64 tokens at a time; softmax is online (FlashAttention-2).
#define TILE 64
#define PITCH (HEAD_DIM + 8)

__device__ __forceinline__ void mma(float* c, const u32* a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128) prefill_attention(const u16* q, const u16* keys, const u16* values, const int* table, u16* out,
        int q_start, int q_len, int heads, float scale) {
    __shared__ __align__(16) u16 ks[TILE * PITCH];
    __shared__ __align__(16) u16 vs[TILE * PITCH];
    int head = blockIdx.y, kv_heads = heads / GROUP, kv = head / GROUP;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, pair = (lane & 3) * 2;
    // Long rows first: the last blocks of a launch are then the short ones.
    int tile = gridDim.x - 1 - blockIdx.x, r0 = tile * TILE + warp * 16 + g, r1 = r0 + 8;
    u32 qa[HEAD_DIM / 16][4];
#pragma unroll
    for (int kk = 0; kk < HEAD_DIM / 16; kk++) {
        const u16* p0 = q + ((size_t)r0 * heads + head) * HEAD_DIM + kk * 16 + pair;
        const u16* p1 = q + ((size_t)r1 * heads + head) * HEAD_DIM + kk * 16 + pair;
        qa[kk][0] = r0 < q_len ? *(const u32*)p0 : 0;
        qa[kk][1] = r1 < q_len ? *(const u32*)p1 : 0;
        qa[kk][2] = r0 < q_len ? *(const u32*)(p0 + 8) : 0;
        qa[kk][3] = r1 < q_len ? *(const u32*)(p1 + 8) : 0;
    }
    float o[HEAD_DIM / 8][4], top[2] = {NEG_BIG, NEG_BIG}, sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int n = 0; n < HEAD_DIM / 8; n++) o[n][0] = o[n][1] = o[n][2] = o[n][3] = 0.0f;
    int limit = q_start + min((tile + 1) * TILE, q_len);
    for (int first = 0; first < limit; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * HEAD_DIM / 8; i += 128) {
            int t = i / (HEAD_DIM / 8), c = i % (HEAD_DIM / 8) * 8;
            uint4 k = make_uint4(0, 0, 0, 0), v = k;
            if (first + t < limit) {
                size_t at = (slot_of(table, first + t) * kv_heads + kv) * HEAD_DIM + c;
                k = *(const uint4*)(keys + at);
                v = *(const uint4*)(values + at);
            }
            *(uint4*)(ks + t * PITCH + c) = k;
            *(uint4*)(vs + t * PITCH + c) = v;
        }
        __syncthreads();
        float s[TILE / 8][4];
#pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
            s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
#pragma unroll
            for (int kk = 0; kk < HEAD_DIM / 16; kk++) {
                const u16* b = ks + (n * 8 + g) * PITCH + kk * 16 + pair;
                mma(s[n], qa[kk], *(const u32*)b, *(const u32*)(b + 8));
            }
        }
        bool edge = first + TILE > q_start + tile * TILE;
        float most[2] = {top[0], top[1]};
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                s[n][j] *= scale;
                if (edge && first + n * 8 + pair + (j & 1) > q_start + (j < 2 ? r0 : r1)) s[n][j] = NEG_BIG;
                most[j >> 1] = fmaxf(most[j >> 1], s[n][j]);
            }
        float keep[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            most[h] = fmaxf(most[h], __shfl_xor_sync(FULL, most[h], 1));
            most[h] = fmaxf(most[h], __shfl_xor_sync(FULL, most[h], 2));
            keep[h] = exp2f(top[h] - most[h]);
            top[h] = most[h];
            sum[h] *= keep[h];
        }
#pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; n++) o[n][0] *= keep[0], o[n][1] *= keep[0], o[n][2] *= keep[1], o[n][3] *= keep[1];
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                s[n][j] = exp2f(s[n][j] - most[j >> 1]);
                sum[j >> 1] += s[n][j];
            }
#pragma unroll
        for (int kk = 0; kk < TILE / 16; kk++) {
            u32 p[4] = {pack(s[2 * kk][0], s[2 * kk][1]), pack(s[2 * kk][2], s[2 * kk][3]),
                        pack(s[2 * kk + 1][0], s[2 * kk + 1][1]), pack(s[2 * kk + 1][2], s[2 * kk + 1][3])};
#pragma unroll
            for (int n = 0; n < HEAD_DIM / 8; n++) {
                u32 b0, b1, at = (u32)__cvta_generic_to_shared(vs + (kk * 16 + (lane & 15)) * PITCH + n * 8);
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(at) : "memory");
                mma(o[n], p, b0, b1);
            }
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(FULL, sum[h], 1);
        sum[h] += __shfl_xor_sync(FULL, sum[h], 2);
        int row = h ? r1 : r0;
        if (row >= q_len) continue;
#pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; n++)
            *(u32*)(out + ((size_t)row * heads + head) * HEAD_DIM + n * 8 + pair) = pack(o[n][2 * h] / sum[h], o[n][2 * h + 1] / sum[h]);
    }
}
