"""Checks every CUDA kernel against PyTorch on random inputs, and times those that matter. Needs a GPU, torch and cupy."""
import math, pathlib, sys
import cupy, torch

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "host/src/engine/cuda/kernels"
SOURCE = "\n".join((FOLDER / n).read_text() for n in
                   ["common.cuh", "elementwise.cu", "gemv.cu", "decode_attention.cu", "prefill_attention.cu"])
BF, DEV = torch.bfloat16, "cuda"
failures = ran = 0
torch.manual_seed(int.from_bytes(__import__("os").urandom(4), "little"))
torch.zeros(1, device=DEV)
stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)


class F(float):
    pass


def module(dim, group):
    return cupy.RawModule(code=SOURCE, backend="nvrtc",
                          options=(f"-DHEAD_DIM={dim}", f"-DGROUP={group}", "-DBLOCK_TOKENS=16"))


def call(m, name, grid, threads, *args):
    conv = []
    for a in args:
        if a is None: conv.append(cupy.uint64(0))
        elif isinstance(a, torch.Tensor): conv.append(cupy.uint64(a.data_ptr()))
        elif isinstance(a, float): conv.append(cupy.float32(a))
        elif isinstance(a, tuple): conv.append(cupy.uint64(a[0]))
        else: conv.append(cupy.int32(a))
    with stream: m.get_function(name)(grid, (threads,), tuple(conv))


def check(what, found, expected, bound):
    global failures, ran
    ran += 1
    torch.cuda.synchronize()
    e = ((found.float() - expected.float()).norm() / expected.float().norm()).item()
    ok = e < bound
    failures += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {what}: relative error {e:.2e} (bound {bound:.0e})", flush=True)


def timed(what, f, bytes_=0, flops=0):
    f(); torch.cuda.synchronize(); t = []
    for _ in range(15):
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record(); f(); b.record(); torch.cuda.synchronize(); t.append(a.elapsed_time(b))
    t.sort(); ms = t[len(t) // 2]
    print(f"time {what}: median {ms:.4f} ms of 15, {t[0]:.4f} to {t[-1]:.4f}"
          + (f", {bytes_ / ms / 1e9:.2f} TB/s" if bytes_ else "") + (f", {flops / ms / 1e9:.0f} TFLOP/s" if flops else ""), flush=True)


def rnd(*s): return torch.randn(*s, device=DEV).to(BF)
def poison(*s): return torch.full(s, float("nan"), device=DEV, dtype=BF)


def heads(dim, group, kv):
    m, h = module(dim, group), group * kv
    for lens in ([1, 16, 65], [200, 193, 1000]):
        b, tl = len(lens), max(lens) // 16 + 1
        table = torch.randperm(b * tl, device=DEV, dtype=torch.int64).reshape(b, tl).to(torch.int32)
        k, v = poison(b * tl * 16, kv, dim), poison(b * tl * 16, kv, dim)
        ks, vs = [rnd(n, kv, dim) for n in lens], [rnd(n, kv, dim) for n in lens]
        for s, n in enumerate(lens):
            p = torch.arange(n, device=DEV); slot = table[s].long()[p // 16] * 16 + p % 16
            k[slot], v[slot] = ks[s], vs[s]
        q, out = rnd(b, h, dim), poison(b, h, dim)
        pos = torch.tensor(lens, device=DEV, dtype=torch.int32) - 1
        scale = math.log2(math.e) / math.sqrt(dim)
        exp = lambda qq, s, mask: torch.nn.functional.scaled_dot_product_attention(
            qq.float().transpose(0, 1)[None], ks[s].float().transpose(0, 1)[None].repeat_interleave(group, 1),
            vs[s].float().transpose(0, 1)[None].repeat_interleave(group, 1), is_causal=mask)[0].transpose(0, 1)
        for splits in (1, 7):
            po = torch.empty(b, h, splits, dim, device=DEV); ps = torch.empty(b, h, splits, 2, device=DEV)
            call(m, "decode_attention", (kv, splits, b), 128, q, k, v, pos, table, tl, po, ps, kv, scale)
            call(m, "combine_parts", (h, b), dim, po, ps, out, splits)
            ref = torch.cat([exp(q[s:s + 1], s, False) for s in range(b)])
            check(f"decode attention dim {dim} group {group} splits {splits} lengths {lens}", out, ref, 5e-3)
        for s, n in enumerate(lens):
            q, o = rnd(n, h, dim), poison(n, h, dim); ref = exp(q, s, True)
            for cut in {0, n // 3}:
                call(m, "prefill_attention", (-(-(n - cut) // 64), h), 128, q[cut:], k, v, table[s], o, cut, n - cut, h, scale)
                check(f"prefill attention dim {dim} group {group} tokens {n} from {cut}", o[:n - cut], ref[cut:], 6e-3)


def rope(dim, group, kv, inter, extra):
    m, h, r = module(dim, group), group * kv, 5
    allh = h + 2 * kv; qkv = rnd(r, allh, dim); bias = torch.randn(allh, dim, device=DEV) if extra else None
    qn, kn = (torch.rand(dim, device=DEV), torch.rand(dim, device=DEV)) if extra else (None, None)
    pos = torch.tensor([0, 17, 40, 3, 99], device=DEV, dtype=torch.int32); seq = torch.tensor([0, 1, 0, 1, 1], device=DEV, dtype=torch.int32)
    table = torch.randperm(14, device=DEV).to(torch.int32).reshape(2, 7).contiguous()
    freq = 10000.0 ** (-torch.arange(dim // 2, device=DEV).float() * 2 / dim)
    q, k, v = poison(r, h, dim), poison(14 * 16, kv, dim), poison(14 * 16, kv, dim)
    call(m, "rope_store", (r,), 512, qkv, q, k, v, pos, seq, table, 7, freq, bias, qn, kn, h, kv, 1e-5, int(inter))
    x = qkv.float() + (bias if extra else 0); x, val = x[:, :h + kv], x[:, h + kv:]
    if extra:
        w = torch.cat([qn.expand(h, dim), kn.expand(kv, dim)]); x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * w
    c, s = [t(pos.float()[:, None] * freq)[:, None] for t in (torch.cos, torch.sin)]
    a, b = (x[..., 0::2], x[..., 1::2]) if inter else x.chunk(2, -1)
    y = torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2) if inter else torch.cat([a * c - b * s, a * s + b * c], -1)
    slot = table[seq.long(), (pos // 16).long()].long() * 16 + (pos % 16).long()
    for n, f, e in (("q", q, y[:, :h]), ("k", k[slot], y[:, h:]), ("v", v[slot], val)):
        check(f"rope_store {n} dim {dim} interleaved {inter} bias and norms {extra}", f, e, 4e-3)


def rest():
    m, H, r, V = module(128, 4), 4096, 7, 128256
    x, d, w = torch.randn(r, H, device=DEV), rnd(r, H), torch.rand(H, device=DEV); y = x + d.float(); o = poison(r, H)
    norm = lambda t: t * torch.rsqrt(t.square().mean(-1, keepdim=True) + 1e-5) * w
    call(m, "add_norm", (r,), 512, x, d, w, o, None, H, 1e-5); check("add_norm", o, norm(y), 4e-3); check("add_norm residual", x, y, 1e-6)
    rows = torch.tensor([6, 2], device=DEV, dtype=torch.int32); o = poison(2, H)
    call(m, "add_norm", (2,), 512, x, None, w, o, rows, H, 1e-5); check("add_norm of rows", o, norm(y[[6, 2]]), 4e-3)
    gu, o = rnd(r, 2 * 776), poison(r, 776); g, u = gu.float().chunk(2, -1)
    call(m, "silu_mul", (4, r), 256, gu, o, 776); check("silu_mul", o, torch.nn.functional.silu(g) * u, 4e-3)
    for n in range(1, 5):
        W, xx, o = rnd(1027, 776), rnd(n, 776), poison(n, 1027)
        call(m, f"gemv{n}", (-(-1027 // 8),), 256, W, xx, o, 1027, 776); check(f"gemv{n}", o, xx.float() @ W.float().T, 4e-3)
    l = rnd(4, V); l[1] = -1; l[2, V - 1] = 99; i = torch.empty(4, device=DEV, dtype=torch.int32)
    call(m, "argmax", (4,), 1024, l, i, V); torch.cuda.synchronize()
    same = all(l[j, i[j]] == l[j].max() and (l[j, :i[j]] < l[j].max()).all() for j in range(4))
    check("argmax, the lowest of equals", torch.tensor([float(same)]), torch.ones(1), 1e-6)
    t, E, o = torch.tensor([5, 0, 99], device=DEV, dtype=torch.int32), rnd(100, H), torch.full((3, H), float("nan"), device=DEV)
    call(m, "embed", (3,), 256, t, E, o, H); check("embed", o, E[t.long()], 1e-9)
    o, key = poison(1000), 0xfedcba9876543210; call(m, "fill_seeded", (4,), 256, o, (1000,), (key,), 1.0, 0.25)
    def unit(c):
        M = 2 ** 64 - 1; z = c * 0x9e3779b97f4a7c15 & M
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & M; z = (z ^ z >> 27) * 0x94d049bb133111eb & M; z ^= z >> 31
        return (sum(z >> 16 * j & 0xffff for j in range(4)) - 131070) / 37837.227
    check("fill_seeded", o.cpu(), torch.tensor([1 + 0.25 * unit(key + j & 2 ** 64 - 1) for j in range(1000)]), 3e-3)


def times():
    m = module(128, 4)
    shapes = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]
    W = [(rnd(n, k), n, k) for _ in range(32) for n, k in shapes] + [(rnd(128256, 4096), 128256, 4096)]
    for rows in (1, 2, 4):
        x, y = rnd(rows, 14336), poison(rows, 128256)
        f = m.get_function(f"gemv{rows}")
        def once():
            for w, n, k in W: call(m, f"gemv{rows}", (-(-n // 8),), 256, w, x, y, n, k)
        g = torch.cuda.CUDAGraph(); side = torch.cuda.Stream()
        global stream
        old = stream
        once(); torch.cuda.synchronize()
        with torch.cuda.graph(g, stream=side):
            stream = cupy.cuda.ExternalStream(side.cuda_stream); once()
        stream = old
        timed(f"all linear layers of Llama-3-8B, {rows} rows, gemv{rows}, graph", g.replay, sum(n * k * 2 for _, n, k in W))
    del W
    for b, splits in ((1, 32), (32, 3)):
        n, tl = 2048, 129
        table = torch.randperm(b * tl, device=DEV).to(torch.int32).reshape(b, tl).contiguous(); L = 4
        k, v, q, o = rnd(L, b * tl * 16, 8, 128), rnd(L, b * tl * 16, 8, 128), rnd(b, 32, 128), poison(b, 32, 128)
        pos = torch.full((b,), n - 1, device=DEV, dtype=torch.int32)
        po = torch.empty(b, 32, splits, 128, device=DEV); ps = torch.empty(b, 32, splits, 2, device=DEV)
        def dec():
            for i in range(32):
                call(m, "decode_attention", (8, splits, b), 128, q, k[i % L], v[i % L], pos, table, tl, po, ps, 8, 0.1)
                call(m, "combine_parts", (32, b), 128, po, ps, o, splits)
        timed(f"decode attention with combining, 32 layers (4 caches in turn), batch {b}, context 2048, launches", dec, 32 * b * n * 8 * 128 * 2 * 2)
    for n in (2048, 8192):
        table = torch.randperm(n // 16, device=DEV).to(torch.int32)
        k, v, q, o = rnd(n, 8, 128), rnd(n, 8, 128), rnd(n, 32, 128), poison(n, 32, 128)
        timed(f"prefill attention, one layer, {n} tokens, 32 heads", lambda: call(m, "prefill_attention", (n // 64, 32), 128, q, k, v, table, o, 0, n, 32, 0.1),
              flops=2 * n * n * 128 * 32)


for shape in ((32, 4, 2), (64, 3, 2), (96, 1, 2), (128, 4, 2), (128, 8, 1)): heads(*shape)
for dim in (32, 64, 96, 128):
    rope(dim, 2, 2, False, False); rope(dim, 2, 2, True, True); rope(dim, 2, 2, False, True)
rest()
print(f"{ran} checks ran, {failures} failed on {torch.cuda.get_device_name()}", flush=True)
times()
sys.exit(1 if failures else 0)
