// An example of a benchmark: put in its place what your crate should do quickly.
//
//     cg-bench run

use std::collections::HashMap;

fn main() {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let mut state: u64 = 1;
    for _ in 0..200_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *counts.entry(state >> 54).or_insert(0) += 1;
    }
    println!("{} keys, {} times the most frequent", counts.len(), counts.values().max().unwrap());
}
