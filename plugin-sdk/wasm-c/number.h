/* A decimal number, for strtod and printf. */
#ifndef LM_BENCH_WASM_NUMBER_H
#define LM_BENCH_WASM_NUMBER_H

#include "door.h"

/* An f64 has at most 767 digits that are not 0. */
enum { DIGITS = 800 };

typedef struct Decimal {
    int count, point;
    /* Whether digits other than 0 were cut off. */
    int more;
    uint8_t digits[DIGITS];
} Decimal;

/* The exact value of a finite number, without its sign. */
void lmb_decimal_of(Decimal *decimal, double number);
/* Rounds to `count` digits, half to even. */
void lmb_decimal_round(Decimal *decimal, int count);

#endif
