/* Of <math.h>: what IEEE 754 defines to the bit. The other functions come from the host, for all languages alike. */
#ifndef LM_BENCH_MATH_H
#define LM_BENCH_MATH_H
#ifdef __cplusplus
extern "C" {
#endif
#define HUGE_VAL __builtin_huge_val()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)
double fabs(double x);
double sqrt(double x);
double floor(double x);
double ceil(double x);
double trunc(double x);
double rint(double x);
double nearbyint(double x);
double round(double x);
double copysign(double x, double sign);
double fmin(double x, double y);
double fmax(double x, double y);
float fabsf(float x);
float sqrtf(float x);
float floorf(float x);
float ceilf(float x);
float truncf(float x);
float rintf(float x);
float nearbyintf(float x);
float roundf(float x);
float copysignf(float x, float sign);
float fminf(float x, float y);
float fmaxf(float x, float y);

#define LMB_FROM_HOST(name) __attribute__((unavailable("use host->math->" name ", which has the same bits everywhere")))
LMB_FROM_HOST("exp") double exp(double x);
LMB_FROM_HOST("exp2") double exp2(double x);
LMB_FROM_HOST("log") double log(double x);
LMB_FROM_HOST("log1p") double log1p(double x);
LMB_FROM_HOST("log2") double log2(double x);
LMB_FROM_HOST("log10") double log10(double x);
LMB_FROM_HOST("pow") double pow(double x, double y);
LMB_FROM_HOST("cbrt") double cbrt(double x);
LMB_FROM_HOST("sin") double sin(double x);
LMB_FROM_HOST("cos") double cos(double x);
LMB_FROM_HOST("tanh") double tanh(double x);
#ifdef __cplusplus
}
#endif
#endif
