/* clang-format off */
/* Made of codegen/kernelwright/codegen/formulas/products.py by `kernelwright formulas`, and explained there. */
#ifndef KW_PRODUCTS_H
#define KW_PRODUCTS_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/numbers.h"

#define KW_PRODUCTS_SECOND_LAUNCH_US 4.0
#define KW_PRODUCTS_SUM_BYTES 4.0

typedef struct kw_products_Product {
  double m;
  double n;
  double k;
  double batch;
  double split;
} kw_products_Product;

typedef struct kw_products_Problem {
  double m;
  double n;
  double k;
  double batch;
  double split;
  double size_a;
  double size_b;
  double size_c;
  double read_a;
  double read_b;
  bool accumulates;
  double d_elements;
} kw_products_Problem;

typedef struct kw_products_Panels {
  double a;
  double b;
} kw_products_Panels;

static inline kw_products_Panels kw_products_shared_panels(double v, double tiles_m, double tiles_n, double bytes_a, double bytes_b) {
  double least_a = 0;
  double least_b = 0;
  double rows = 0;
  double high = 0;
  double a = 0;
  double b = 0;
  least_a = v * bytes_a;
  least_b = v * bytes_b;
  rows = 1.0;
  while (true) {
    high = kw_min(rows, tiles_m);
    a = high * bytes_a;
    b = kw_max(1.0, v / high) * bytes_b;
    if (v / high <= tiles_n && a + b < least_a + least_b) {
      least_a = a;
      least_b = b;
    }
    if (high >= kw_min(tiles_m, v)) {
      return KW_RECORD(kw_products_Panels, least_a, least_b);
    }
    rows *= 2.0;
  }
}

#endif /* KW_PRODUCTS_H */
