/* A sum over a table, with static and dynamic loops. */
#include <stdio.h>

int main(void) {
  static double table[200000];
  double total = 0;
  for (int round = 0; round < 10; round++) {
#pragma omp parallel for
    for (int i = 0; i < 200000; i++) table[i] += i % 7 * 0.5;
#pragma omp parallel for schedule(dynamic, 500) reduction(+ : total)
    for (int i = 0; i < 200000; i++) total += table[i];
  }
  printf("%.0f\n", total);
}
