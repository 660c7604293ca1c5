/* An assertion that fails ends the collector; the host tells which. */
#ifdef __cplusplus
extern "C" {
#endif
__attribute__((noreturn)) void lmb_assert_failed(const char *condition, const char *file, int line);
#ifdef __cplusplus
}
#endif
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : lmb_assert_failed(#condition, __FILE__, __LINE__))
#endif
#ifndef __cplusplus
#undef static_assert
#define static_assert _Static_assert
#endif
