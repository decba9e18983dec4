use criterion::profiler::Profiler;
use criterion::{black_box, criterion_group, criterion_main, BatchSize, Criterion};
use std::path::Path;
use std::time::Instant;

fn timed() {
    let start = Instant::now();
    black_box(words::work(300));
    black_box(start.elapsed());
}

/// Reads the clock, as profilers do.
struct Reader;

impl Profiler for Reader {
    fn start_profiling(&mut self, _: &str, _: &Path) {
        timed();
        timed();
    }
    fn stop_profiling(&mut self, _: &str, _: &Path) {
        timed();
    }
}

fn bench(c: &mut Criterion) {
    let text = "to be or not to be that is the question ".repeat(20);
    c.bench_function("count", |b| b.iter(|| words::count(black_box(&text))));
    c.bench_function("sort", |b| b.iter(|| black_box(vec![3, 1, 2]).sort()));
    c.bench_function("work", |b| {
        black_box(words::work(words::number("SETUP")));
        let rounds = words::number("WORK");
        b.iter(|| words::work(black_box(rounds)))
    });
    c.bench_function("grows", |b| b.iter(words::growing()));
    c.bench_function("timed", |b| {
        timed();
        let rounds = words::number("WORK");
        b.iter_batched(timed, |()| words::work(black_box(rounds)), BatchSize::SmallInput)
    });
}

criterion_group! { name = benches; config = Criterion::default().with_profiler(Reader); targets = bench }
criterion_main!(benches);
