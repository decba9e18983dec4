//! What is measured.

use std::collections::BTreeMap;

/// Without `inline(never)` there may be no function to name.
#[inline(never)]
pub fn count(text: &str) -> usize {
    let mut words = BTreeMap::new();
    for word in text.split(' ') {
        *words.entry(word).or_insert(0) += 1;
    }
    words.len()
}

/// Takes as many rounds as it is told to.
#[inline(never)]
pub fn work(rounds: u64) -> u64 {
    (0..rounds).fold(0, |sum, round| std::hint::black_box(sum ^ round))
}

/// Return the number in this variable of the environment, by which a test makes something slower.
pub fn number(name: &str) -> u64 {
    std::env::var(name).map_or(1000, |text| text.parse().unwrap())
}

/// Return what takes WORK rounds: its first iteration prepares, and what it fills grows.
pub fn growing() -> impl FnMut() -> usize {
    let (rounds, mut kept) = (number("WORK"), Vec::new());
    move || {
        if kept.is_empty() {
            work(number("SETUP"));
        }
        kept.push(work(std::hint::black_box(rounds)));
        kept.len()
    }
}
