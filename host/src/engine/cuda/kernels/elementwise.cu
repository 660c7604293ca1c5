// The finaliser of SplitMix64: the values equal those that the host makes for the same seed and name.
__device__ __forceinline__ u64 mix(u64 counter) {
    u64 z = counter * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

extern "C" __global__ void fill_seeded(u16* out, u64 n, u64 key, float mean, float deviation) {
    const float inverse = 1.0f / 37837.227f;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += step) {
        u64 b = mix(key + i);
        int sum = (int)(b & 0xffff) + (int)((b >> 16) & 0xffff) + (int)((b >> 32) & 0xffff) + (int)(b >> 48);
        float unit = __fmul_rn((float)(sum - 2 * 65535), inverse);
        out[i] = narrow(__fadd_rn(mean, __fmul_rn(deviation, unit)));
    }
}

extern "C" __global__ void embed(const int* tokens, const u16* table, float* x, int hidden) {
    const u16* row = table + (size_t)tokens[blockIdx.x] * hidden;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) x[(size_t)blockIdx.x * hidden + i] = widen(row[i]);
}

// Adds `delta` (if any) to the residual stream `x`, then writes its RMS norm. `rows` (if any) picks rows of `x`.
extern "C" __global__ void add_norm(float* x, const u16* delta, const float* weight, u16* out, const int* rows, int hidden, float eps) {
    size_t source = rows ? rows[blockIdx.x] : blockIdx.x;
    float* row = x + source * hidden;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        float v = row[i];
        if (delta) {
            v += widen(delta[source * hidden + i]);
            row[i] = v;
        }
        sum += v * v;
    }
    __shared__ float parts[32];
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = sum;
    __syncthreads();
    sum = warp_sum((threadIdx.x & 31) < (blockDim.x >> 5) ? parts[threadIdx.x & 31] : 0.0f);
    float scale = rsqrtf(sum / hidden + eps);
    for (int i = threadIdx.x; i < hidden; i += blockDim.x)
        out[(size_t)blockIdx.x * hidden + i] = narrow(row[i] * scale * weight[i]);
}

// Adds biases, normalises and rotates query and key heads, and stores keys and values in their blocks. A warp per head.
extern "C" __global__ void rope_store(const u16* qkv, u16* q, u16* keys, u16* values, const int* positions, const int* sequences,
                                      const int* tables, int table_len, const float* frequencies, const float* bias,
                                      const float* q_norm, const float* k_norm, int heads, int kv_heads, float eps, int interleaved) {
    const int half = HEAD_DIM / 2, per_lane = (HEAD_DIM / 2 + 31) / 32;
    int row = blockIdx.x, lane = threadIdx.x & 31, all = heads + 2 * kv_heads;
    int position = positions[row];
    size_t slot = slot_of(tables + (size_t)sequences[row] * table_len, position);
    for (int head = threadIdx.x >> 5; head < all; head += blockDim.x >> 5) {
        const u16* in = qkv + ((size_t)row * all + head) * HEAD_DIM;
        const float* norm = head < heads ? q_norm : k_norm;
        bool is_value = head >= heads + kv_heads;
        float a[per_lane], b[per_lane], squares = 0.0f;
        int ia[per_lane], ib[per_lane];
#pragma unroll
        for (int j = 0; j < per_lane; j++) {
            int p = lane + 32 * j;
            ia[j] = interleaved ? 2 * p : p;
            ib[j] = interleaved ? 2 * p + 1 : p + half;
            a[j] = b[j] = 0.0f;
            if (p < half) {
                a[j] = widen(in[ia[j]]) + (bias ? bias[head * HEAD_DIM + ia[j]] : 0.0f);
                b[j] = widen(in[ib[j]]) + (bias ? bias[head * HEAD_DIM + ib[j]] : 0.0f);
            }
            squares += a[j] * a[j] + b[j] * b[j];
        }
        float scale = norm && !is_value ? rsqrtf(warp_sum(squares) / HEAD_DIM + eps) : 1.0f;
        u16* out = head < heads ? q + ((size_t)row * heads + head) * HEAD_DIM
                   : is_value   ? values + (slot * kv_heads + head - heads - kv_heads) * HEAD_DIM
                                : keys + (slot * kv_heads + head - heads) * HEAD_DIM;
#pragma unroll
        for (int j = 0; j < per_lane; j++) {
            int p = lane + 32 * j;
            if (p >= half) continue;
            float x = a[j], y = b[j];
            if (!is_value) {
                if (norm) {
                    x *= scale * norm[ia[j]];
                    y *= scale * norm[ib[j]];
                }
                float s, c;
                sincosf((float)position * frequencies[p], &s, &c);
                float turned = x * c - y * s;
                y = x * s + y * c;
                x = turned;
            }
            out[ia[j]] = narrow(x);
            out[ib[j]] = narrow(y);
        }
    }
}

extern "C" __global__ void silu_mul(const u16* gate_up, u16* out, int width) {
    size_t row = blockIdx.y;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= width) return;
    float gate = widen(gate_up[row * 2 * width + i]), up = widen(gate_up[row * 2 * width + width + i]);
    out[row * width + i] = narrow(gate / (1.0f + __expf(-gate)) * up);
}

// Index of the largest logit of each row; the lowest of equals.
extern "C" __global__ void argmax(const u16* logits, int* out, int vocab) {
    const u16* row = logits + (size_t)blockIdx.x * vocab;
    float best = __int_as_float(0xff800000);
    int at = 0x7fffffff;
    for (int i = threadIdx.x; i < vocab; i += blockDim.x) {
        float v = widen(row[i]);
        if (v > best || at == 0x7fffffff) {
            best = v;
            at = i;
        }
    }
    __shared__ float values[32];
    __shared__ int indices[32];
    for (int pass = 0; pass < 2; pass++) {
#pragma unroll
        for (int o = 16; o; o >>= 1) {
            float v = __shfl_xor_sync(FULL, best, o);
            int i = __shfl_xor_sync(FULL, at, o);
            if (v > best || (v == best && i < at)) {
                best = v;
                at = i;
            }
        }
        if (pass == 1) break;
        if ((threadIdx.x & 31) == 0) {
            values[threadIdx.x >> 5] = best;
            indices[threadIdx.x >> 5] = at;
        }
        __syncthreads();
        bool there = (threadIdx.x & 31) < (blockDim.x >> 5);
        best = there ? values[threadIdx.x & 31] : __int_as_float(0xff800000);
        at = there ? indices[threadIdx.x & 31] : 0x7fffffff;
    }
    if (threadIdx.x == 0) out[blockIdx.x] = at;
}
