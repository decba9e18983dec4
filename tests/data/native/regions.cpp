#include <cg_bench.h>

extern "C" {
void burn(long turns);
void other(void);
}

int main() {
    {
        cg_bench::region region{"empty"};
    }
    {
        cg_bench::region region{"burn"};
        burn(1000);
    }
    other();
    try {
        cg_bench::region region{"thrown"};
        throw 1;
    } catch (int) {
        cg_bench::region region{"caught"};
    }
}
