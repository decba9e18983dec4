use std::hint::black_box;

use forty::{numbers, text};
use gungraun::{library_benchmark, library_benchmark_group, main};

#[library_benchmark]
#[benches::sizes(args = [10, 20, 50, 100, 200], setup = numbers)]
fn sum(input: Vec<u64>) -> u64 {
    forty::sum(black_box(&input))
}

#[library_benchmark]
#[benches::sizes(args = [10, 20, 50, 100, 200], setup = numbers)]
fn sort(input: Vec<u64>) -> Vec<u64> {
    forty::sort(black_box(&input))
}

#[library_benchmark]
#[benches::sizes(args = [10, 20, 50, 100, 200], setup = numbers)]
fn insertion(input: Vec<u64>) -> Vec<u64> {
    forty::insertion(black_box(&input))
}

#[library_benchmark]
#[benches::sizes(args = [10, 20, 50, 100, 200], setup = numbers)]
fn tree(input: Vec<u64>) -> usize {
    forty::tree(black_box(&input))
}

#[library_benchmark]
#[benches::sizes(args = [10, 20, 50, 100, 200], setup = numbers)]
fn table(input: Vec<u64>) -> usize {
    forty::table(black_box(&input))
}

#[library_benchmark]
#[benches::sizes(args = [10, 20, 50, 100, 200], setup = text)]
fn words(input: String) -> Vec<String> {
    forty::words(black_box(&input))
}

#[library_benchmark]
#[benches::sizes(args = [10, 20, 50, 100, 200], setup = text)]
fn parse(input: String) -> u64 {
    forty::parse(black_box(&input))
}

#[library_benchmark]
#[benches::sizes(args = [10, 20, 50, 100, 200], setup = text)]
fn join(input: String) -> String {
    forty::join(black_box(&input))
}

library_benchmark_group!(name = all, benchmarks = [sum, sort, insertion, tree, table, words, parse, join]);
main!(library_benchmark_groups = all);
