//! Declarations. In the formulas, for one phase and layer, over the rows of `moe_route` that were delivered: E experts,
//! `n_e` = sum of weight * counts[e], `N` = sum over e of `n_e`, mu = N / E.

use lm_bench_plugin::{Direction, MetricDef};

const KEYS: &[&str] = &["phase", "layer"];

const fn gauge(name: &'static str) -> MetricDef {
    MetricDef::gauge(name, "1").labels(KEYS)
}

pub(crate) const UTILIZATION: MetricDef = gauge("expert_utilization_ratio")
    .better(Direction::Higher)
    .formula(
        "|{e: n_e > 0}| / E with n_e = sum of counts[e] over the window; over layers: sum of |{e: n_e > 0}| / sum of E",
    )
    .about(
        "Share of experts that received at least one token in the window. It approaches 1 in any long window: \
         expert_load_balancedness says how evenly, unique_active_experts_per_step how many per forward pass.",
    );

pub(crate) const BALANCEDNESS: MetricDef = gauge("expert_load_balancedness")
    .better(Direction::Higher)
    .formula(
        "mu / max_e n_e with n_e = sum of weight * counts[e], mu = sum_e n_e / E; over layers: sum of mu / sum of \
         max_e n_e (as the log of vLLM's EPLB, per expert instead of per rank)",
    )
    .about(
        "How busy the experts are while the most loaded one works: the speed that imbalance leaves when each expert \
         has its own device. 1 is balanced.",
    );

pub(crate) const ACTIVE_PER_TOKEN: MetricDef = gauge("active_experts_per_token")
    .formula(
        "(sum of weight * counts - sum of weight * dropped) / (sum of weight * tokens), over rows, experts and layers",
    )
    .about("Experts that computed a token, on average; k for a fixed top-k router that drops nothing.");

pub(crate) const LOAD_SHARE: MetricDef = MetricDef::gauge("expert_load_share", "1")
    .labels(&["phase", "expert"])
    .formula("n_e / sum_e n_e with n_e = sum of weight * counts[e], summed over layers by expert index")
    .about(
        "Share of the assignments that went to the expert of this index; 1/E is balanced. Experts of different layers \
         are different experts: see expert_load_share_max for the worst within a layer.",
    );

pub(crate) const LOAD_SHARE_MAX: MetricDef = gauge("expert_load_share_max")
    .better(Direction::Lower)
    .formula("max_e n_e / sum_e n_e with n_e = sum of weight * counts[e]; over layers: the largest")
    .about("Share of a layer's assignments that went to its most loaded expert.");

pub(crate) const MAX_VIO_GLOBAL: MetricDef = gauge("max_vio_global")
    .better(Direction::Lower)
    .formula(
        "max_e n_e / mu - 1 with n_e = sum of weight * counts[e] over the window, mu = sum_e n_e / E; over layers: \
         the largest (Wang et al., arXiv 2408.15664)",
    )
    .about("How far the most loaded expert is above the mean load over the whole window; 0 is balanced.");

pub(crate) const MAX_VIO_BATCH: MetricDef = MetricDef::gauge("max_vio_batch", "1")
    .labels(&["phase", "layer", "stat"])
    .better(Direction::Lower)
    .formula(
        "per step: max_e counts[e] * E / sum_e counts[e] - 1, over layers the largest; stat=mean: mean over steps by \
         weight, stat=max: largest. Over layers, steps next to lost rows are left out (arXiv 2408.15664)",
    )
    .about("How far the most loaded expert of a single step is above the mean load; 0 is balanced.");

pub(crate) const LOAD_CV: MetricDef = gauge("load_cv")
    .better(Direction::Lower)
    .formula(
        "sqrt(mean_e (n_e - mu)^2) / mu with n_e = sum of weight * counts[e], mu = sum_e n_e / E; over layers: root of \
         the mean square (Shazeer et al., arXiv 1701.06538)",
    )
    .about("Coefficient of variation of the experts' loads; read it against load_cv_noise_floor.");

pub(crate) const LOAD_CV_FLOOR: MetricDef = gauge("load_cv_noise_floor")
    .formula(
        "sqrt((1 - k/E) * E / (T*k)) for T tokens; with weights: sqrt(E * sum of w^2*T*k*(1 - k/E)) / sum of w*T*k; \
         over layers: root of the mean square",
    )
    .about(
        "Coefficient of variation that perfectly balanced random routing to k distinct experts would show for the same \
         number of tokens. It is smaller than the (1 - 1/E) of independent picks, because one token never takes an \
         expert twice.",
    );

pub(crate) const ENTROPY: MetricDef = gauge("load_entropy_normalized")
    .better(Direction::Higher)
    .formula(
        "-sum_e f_e * ln f_e / ln E with f_e = n_e / sum_e n_e, n_e = sum of weight * counts[e]; over layers: the mean",
    )
    .about("Entropy of the load shares; 1 is balanced, 0 means that one expert does everything.");

pub(crate) const BALANCE_LOSS: MetricDef = gauge("balance_loss")
    .better(Direction::Lower)
    .formula(
        "E * sum_e f_e * P_e with f_e = n_e / sum_e n_e, n_e = sum of weight * counts[e], P_e = p_e / sum_e p_e, \
         p_e = sum of weight * prob_sum[e]; over layers: the mean",
    )
    .about(
        "Balance loss of Switch Transformer (Fedus et al., arXiv 2101.03961), with f normalised by T*k so that 1 is \
         balanced for any k, and P by its sum so that routers whose probabilities do not add up to 1 compare.",
    );

pub(crate) const UNIQUE: MetricDef = gauge("unique_active_experts_per_step")
    .formula(
        "mean by weight, over rows with tokens, of |{e: counts[e] > 0}|; over layers: mean over their rows",
    )
    .about(
        "Experts that one layer uses in one forward pass: they decide how many weight bytes a step reads.",
    );

pub(crate) const UNIQUE_UNIFORM: MetricDef = gauge("unique_active_experts_uniform")
    .formula("mean by weight, over the same rows, of E * (1 - (1 - k/E)^tokens)")
    .about("What unique_active_experts_per_step would be if each token chose k of E experts at random.");

pub(crate) const DEAD: MetricDef = gauge("dead_experts")
    .better(Direction::Lower)
    .formula("|{e: n_e = 0}| with n_e = sum of counts[e] over the delivered rows; over layers: the sum")
    .about("Experts that received no token in the rows seen; read it against dead_experts_uniform.");

pub(crate) const DEAD_UNIFORM: MetricDef = gauge("dead_experts_uniform")
    .formula("E * product over rows of (1 - k/E)^tokens; over layers: the sum")
    .about("Experts that random routing would leave without a token in as many tokens as were seen.");

pub(crate) const DROPPED: MetricDef = gauge("dropped_ratio")
    .better(Direction::Lower)
    .formula("sum of weight * dropped / sum of weight * tokens * top_k; over layers: of the sums")
    .about("Share of assignments that were dropped because an expert was full.");

pub(crate) const ALL: &[MetricDef] = &[
    UTILIZATION,
    BALANCEDNESS,
    ACTIVE_PER_TOKEN,
    LOAD_SHARE,
    LOAD_SHARE_MAX,
    MAX_VIO_GLOBAL,
    MAX_VIO_BATCH,
    LOAD_CV,
    LOAD_CV_FLOOR,
    ENTROPY,
    BALANCE_LOSS,
    UNIQUE,
    UNIQUE_UNIFORM,
    DEAD,
    DEAD_UNIFORM,
    DROPPED,
];
