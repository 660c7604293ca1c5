// One query per sequence. A block takes one key/value head with its GROUP query heads and one part of the sequence
// (split-KV); its four warps take turns at tokens, and `combine_parts` joins what the parts found.
#define LANE_VALUES (HEAD_DIM / 32)
#define WARPS 4
#define AT_ONCE 4

__device__ __forceinline__ void load_lane(const u16* p, float* out) {
#pragma unroll
    for (int e = 0; e < LANE_VALUES; e++) out[e] = widen(p[e]);
}
struct __align__(LANE_VALUES == 3 ? 2 : LANE_VALUES * 2) LaneRow { u16 v[LANE_VALUES]; };

extern "C" __global__ void __launch_bounds__(128) decode_attention(const u16* q, const u16* keys, const u16* values, const int* positions,
        const int* tables, int table_len, float* part_out, float* part_stats, int kv_heads, float scale) {
    int kv = blockIdx.x, split = blockIdx.y, splits = gridDim.y, sequence = blockIdx.z;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, heads = kv_heads * GROUP;
    int length = positions[sequence] + 1, part = (length + splits - 1) / splits;
    int begin = split * part, end = min(begin + part, length);
    const int* table = tables + (size_t)sequence * table_len;
    float query[GROUP][LANE_VALUES], acc[GROUP][LANE_VALUES], top[GROUP], sum[GROUP];
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        load_lane(q + ((size_t)sequence * heads + kv * GROUP + g) * HEAD_DIM + lane * LANE_VALUES, query[g]);
        top[g] = NEG_BIG;
        sum[g] = 0.0f;
#pragma unroll
        for (int e = 0; e < LANE_VALUES; e++) acc[g][e] = 0.0f, query[g][e] *= scale;
    }
    for (int t = begin + warp * AT_ONCE; t < end; t += WARPS * AT_ONCE) {
        LaneRow k[AT_ONCE], v[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            size_t at = (slot_of(table, min(t + u, end - 1)) * kv_heads + kv) * HEAD_DIM + lane * LANE_VALUES;
            k[u] = *(const LaneRow*)(keys + at);
            v[u] = *(const LaneRow*)(values + at);
        }
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            float s[AT_ONCE], most = top[g];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                s[u] = 0.0f;
#pragma unroll
                for (int e = 0; e < LANE_VALUES; e++) s[u] += query[g][e] * widen(k[u].v[e]);
                s[u] = warp_sum(s[u]);
                if (t + u >= end) s[u] = NEG_BIG;
                most = fmaxf(most, s[u]);
            }
            float keep = exp2f(top[g] - most);
            top[g] = most;
            sum[g] *= keep;
#pragma unroll
            for (int e = 0; e < LANE_VALUES; e++) acc[g][e] *= keep;
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                float p = exp2f(s[u] - most);
                sum[g] += p;
#pragma unroll
                for (int e = 0; e < LANE_VALUES; e++) acc[g][e] += p * widen(v[u].v[e]);
            }
        }
    }
    __shared__ float tops[WARPS][GROUP], sums[WARPS][GROUP], outs[WARPS][GROUP][HEAD_DIM];
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        if (lane == 0) tops[warp][g] = top[g], sums[warp][g] = sum[g];
#pragma unroll
        for (int e = 0; e < LANE_VALUES; e++) outs[warp][g][lane * LANE_VALUES + e] = acc[g][e];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < GROUP * HEAD_DIM; i += blockDim.x) {
        int g = i / HEAD_DIM, d = i % HEAD_DIM;
        float most = NEG_BIG, total = 0.0f, value = 0.0f;
        for (int w = 0; w < WARPS; w++) most = fmaxf(most, tops[w][g]);
        for (int w = 0; w < WARPS; w++) {
            float p = sums[w][g] > 0.0f ? exp2f(tops[w][g] - most) : 0.0f;
            total += p * sums[w][g];
            value += p * outs[w][g][d];
        }
        size_t cell = ((size_t)sequence * heads + kv * GROUP + g) * splits + split;
        part_out[cell * HEAD_DIM + d] = value;
        if (d == 0) part_stats[cell * 2] = most, part_stats[cell * 2 + 1] = total;
    }
}

extern "C" __global__ void combine_parts(const float* part_out, const float* part_stats, u16* out, int splits) {
    size_t head = (size_t)blockIdx.y * gridDim.x + blockIdx.x, first = head * splits;
    float most = NEG_BIG, total = 0.0f, value = 0.0f;
    for (int s = 0; s < splits; s++) most = fmaxf(most, part_stats[(first + s) * 2]);
    for (int s = 0; s < splits; s++) {
        float l = part_stats[(first + s) * 2 + 1];
        float p = l > 0.0f ? exp2f(part_stats[(first + s) * 2] - most) : 0.0f;
        total += p * l;
        value += p * part_out[(first + s) * HEAD_DIM + threadIdx.x];
    }
    out[head * HEAD_DIM + threadIdx.x] = narrow(value / total);
}
