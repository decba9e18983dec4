// Hash maps with random seeds, sorting, formatting and threads.
use std::collections::{BTreeMap, HashMap};
use std::thread;

fn main() {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for i in 0..3000u64 {
        *counts.entry(format!("word{}", i * 7919 % 997)).or_default() += 1;
    }
    let tree: BTreeMap<_, _> = counts.iter().map(|(word, count)| (*count, word.len())).collect();
    let workers: Vec<_> = (0..3u64)
        .map(|n| thread::spawn(move || (0..5000u64).fold(n, |sum, i| sum.wrapping_mul(31) ^ i)))
        .collect();
    let sum: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).fold(0, u64::wrapping_add);
    println!("{} {} {}", counts.len(), tree.len(), sum);
}
