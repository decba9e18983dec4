use divan::{black_box, Bencher};

fn main() {
    divan::main();
}

#[divan::bench(args = [10, 100000], max_time = 0.001)]
fn rounds(rounds: u64) -> u64 {
    words::work(black_box(rounds))
}

#[divan::bench]
fn work(bencher: Bencher) {
    black_box(words::work(words::number("SETUP")));
    let rounds = words::number("WORK");
    bencher.bench(|| words::work(black_box(rounds)));
}

#[divan::bench]
fn grows(bencher: Bencher) {
    bencher.bench_local(words::growing());
}

#[divan::bench]
fn panics() {
    if words::number("SETUP") == 1 {
        panic!("no corpus");
    }
}

mod inputs {
    use super::*;

    #[divan::bench(threads = [1, 2])]
    fn sorted(bencher: Bencher) {
        let size = words::number("SETUP");
        bencher.with_inputs(|| (0..size).rev().collect::<Vec<_>>()).bench_values(|values| {
            words::work(black_box(20));
            values
        });
    }
}
