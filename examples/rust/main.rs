//! Word counting with a `HashMap`, whose hash seed is random in every run: unsealed, the counts differ each time.
//!
//!     rustc -O -g -o examples/rust/wordcount examples/rust/main.rs
//!     cg-bench run --id wordcount -- examples/rust/wordcount

use std::collections::HashMap;

const SYLLABLES: [&str; 8] = ["ca", "che", "grind", "bench", "mark", "sta", "ble", "run"];

/// Made-up text, the same in every run: a linear congruential generator chooses two syllables for each word.
fn make_text(words: usize) -> String {
    let mut state: u64 = 42;
    let mut syllable = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        SYLLABLES[(state >> 33) as usize % SYLLABLES.len()]
    };
    let mut text = String::new();
    for _ in 0..words {
        text.push_str(syllable());
        text.push_str(syllable());
        text.push_str(syllable());
        text.push(' ');
    }
    text
}

fn count_words(text: &str) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts
}

fn main() {
    let text = make_text(100_000);
    let mut counts: Vec<_> = count_words(&text).into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    for (word, count) in counts.iter().take(3) {
        println!("{word} {count}");
    }
}
