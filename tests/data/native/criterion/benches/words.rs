use criterion::{black_box, criterion_group, criterion_main, Criterion};

fn bench(c: &mut Criterion) {
    let text = "to be or not to be that is the question ".repeat(20);
    c.bench_function("count", |b| b.iter(|| words::count(black_box(&text))));
    c.bench_function("sort", |b| b.iter(|| black_box(vec![3, 1, 2]).sort()));
    c.bench_function("work", |b| {
        black_box(words::work(words::number("SETUP")));
        let rounds = words::number("WORK");
        b.iter(|| words::work(black_box(rounds)))
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
