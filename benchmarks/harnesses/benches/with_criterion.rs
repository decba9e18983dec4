use criterion::{black_box, criterion_group, criterion_main, BenchmarkId, Criterion};
use forty::*;

fn of_numbers<T>(criterion: &mut Criterion, name: &str, function: fn(&[u64]) -> T) {
    for size in SIZES {
        criterion.bench_with_input(BenchmarkId::new(name, size), &numbers(size), |bencher, input| {
            bencher.iter(|| function(black_box(input)))
        });
    }
}

fn of_text<T>(criterion: &mut Criterion, name: &str, function: fn(&str) -> T) {
    for size in SIZES {
        criterion.bench_with_input(BenchmarkId::new(name, size), &text(size), |bencher, input| {
            bencher.iter(|| function(black_box(input)))
        });
    }
}

fn all(criterion: &mut Criterion) {
    of_numbers(criterion, "sum", sum);
    of_numbers(criterion, "sort", sort);
    of_numbers(criterion, "insertion", insertion);
    of_numbers(criterion, "tree", tree);
    of_numbers(criterion, "table", table);
    of_text(criterion, "words", words);
    of_text(criterion, "parse", parse);
    of_text(criterion, "join", join);
}

criterion_group!(benches, all);
criterion_main!(benches);
