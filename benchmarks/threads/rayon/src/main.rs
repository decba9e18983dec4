// A parallel sort and a parallel sum.
use rayon::prelude::*;

fn main() {
    let mut numbers: Vec<u64> = (0..100_000u64).map(|i| i * 2_654_435_761 % 1_000_003).collect();
    numbers.par_sort_unstable();
    let sum: u64 = numbers.par_iter().map(|n| n * n % 1013).sum();
    println!("{} {}", numbers[500], sum);
}
